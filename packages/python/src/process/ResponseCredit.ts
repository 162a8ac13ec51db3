/**
 * How far a model process may be ahead of the reader of one request. It sends a response only with credit, which it
 * receives back once the reader has taken a response; `credit.py` is its other half. Credit returns in halves, so that
 * a stream needs few frames, and a short one none.
 */

/** Responses that the reader has not taken. */
export const responsesAhead = 16

export interface ResponseCreditOptions {
  /** Lets the process send as many further responses. */
  readonly give: (count: number) => void
  /** The process must wait for the reader from now on, or no longer. */
  readonly onWait: (waits: boolean) => void
}

export class ResponseCredit {
  readonly #options: ResponseCreditOptions
  /** Responses whose credit was not given back. */
  #sent = 0
  /** Those of them that the reader has taken. */
  #taken = 0
  #waits = false
  #isClosed = false

  constructor(options: ResponseCreditOptions) {
    this.#options = options
  }

  /** The process has sent a response. */
  sent(): void {
    this.#sent += 1
    this.#update()
  }

  /** The reader has taken a response, or none will. */
  taken(): void {
    this.#taken += 1
    if (this.#isClosed || this.#taken < responsesAhead / 2) return
    this.#options.give(this.#taken)
    this.#sent -= this.#taken
    this.#taken = 0
    this.#update()
  }

  /** The process waits for no reader any more. */
  close(): void {
    this.#isClosed = true
    this.#update()
  }

  #update(): void {
    const waits = !this.#isClosed && this.#sent >= responsesAhead
    if (waits === this.#waits) return
    this.#waits = waits
    this.#options.onWait(waits)
  }
}
