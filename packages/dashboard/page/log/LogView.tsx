/** To be written. */
export const LogView = () => <h1>Log</h1>
