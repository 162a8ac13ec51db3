/** The log line of one call: a text in Triton's style, or fields in the format "json". */
export interface CallLineFields {
  /** A route or an RPC. */
  readonly operation: string
  readonly status: string
  readonly duration_ms: number
  readonly model?: string
  readonly request_id?: string
}

export class CallLine {
  readonly fields: CallLineFields

  constructor(fields: CallLineFields) {
    this.fields = fields
  }

  /** The text, also for loggers of the program. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString()
  }

  toJSON(): string {
    return this.toString()
  }

  toString(): string {
    const { operation, status, duration_ms, model, request_id } = this.fields
    const request =
      model === undefined ? "" : `, model '${model}'${request_id === undefined ? "" : `, id '${request_id}'`}`
    return `${operation}: ${status}, ${duration_ms.toFixed(3)} ms${request}`
  }
}
