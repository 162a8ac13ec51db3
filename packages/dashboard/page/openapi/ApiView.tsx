/** To be written. */
export const ApiView = () => <h1>API</h1>
