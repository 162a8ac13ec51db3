/** An answer of the server that is an error, as the page shows it. */
export class Refusal extends Error {
  override readonly name = "Refusal"
  /** HTTP status; 0 if the server does not answer. */
  readonly status: number
  /** Tag of the error, such as `InvalidRequest`; undefined for errors of the route. */
  readonly tag: string | undefined

  constructor(message: string, status: number, tag?: string) {
    super(message)
    this.status = status
    this.tag = tag
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
    return new Refusal(messageOf(text) ?? `The server answered with status ${response.status}.`, response.status, tag)
  }
}

const messageOf = (text: string): string | undefined => {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json === "object" && json !== null && "error" in json) return String(json.error)
  } catch {
    // Proxies answer with pages.
  }
  return text.trim() === "" ? undefined : text.slice(0, 2_000)
}
