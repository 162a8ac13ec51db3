/** The life of an HTTP/2 connection over node:http2; subclasses send the requests. */
import { type ClientHttp2Session, connect } from "node:http2"

export abstract class Http2Connection {
  protected readonly session: ClientHttp2Session

  protected constructor(session: ClientHttp2Session) {
    this.session = session
  }

  get isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed
  }

  close(): void {
    this.session.destroy()
  }
}

/** Rejects if no connection can be opened. Cases share one connection, and each stream listens to it. */
export const open = (port: number): Promise<ClientHttp2Session> =>
  new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`, () => resolve(session))
    session.setMaxListeners(0)
    session.on("error", reject)
  })
