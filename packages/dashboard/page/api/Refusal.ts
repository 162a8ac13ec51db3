/** An answer of the server that is an error, as the page shows it. */
export class Refusal extends Error {
  override readonly name = "Refusal"
  /** HTTP status; 0 if the server does not answer. */
  readonly status: number
  /** Tag of the error, such as `InvalidRequest`; undefined for errors of the route. */
  readonly tag: string | undefined
  /** JSON of the fields of a declared error. */
  readonly detail: string | undefined

  constructor(message: string, status: number, tag?: string, detail?: string) {
    super(message)
    this.status = status
    this.tag = tag
    this.detail = detail
  }

  /** `InvalidRequest, status 400`. */
  get kind(): string {
    if (this.status === 0) return "no answer"
    return this.tag === undefined ? `status ${this.status}` : `${this.tag}, status ${this.status}`
  }

  static of(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    return new Refusal(error instanceof Error ? error.message : String(error), 0)
  }

  /** Reads the error of a response. */
  static async from(response: Response): Promise<Refusal> {
    const text = (await response.text()).slice(0, 100_000)
    const tag = response.headers.get("nereid-error") ?? undefined
    const detail = response.headers.get("nereid-error-detail") ?? undefined
    const message = messageOf(text) ?? `The server answered with status ${response.status}.`
    return new Refusal(message, response.status, tag, detail)
  }
}

const messageOf = (text: string): string | undefined => {
  try {
    // The first event of a stream may be an error as well.
    const json: unknown = JSON.parse(text.replace(/^data: /, ""))
    if (typeof json === "object" && json !== null && "error" in json) return String(json.error)
  } catch {
    // Proxies answer with pages.
  }
  return text.trim() === "" ? undefined : text.slice(0, 2_000)
}
