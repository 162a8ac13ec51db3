/** To be written. */
export const LiveView = () => <h1>Live</h1>
