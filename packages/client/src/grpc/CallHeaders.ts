/** Headers of calls: those that the calls of an RPC repeat, and those of one call. */
import { HeaderTemplate } from "@nereid/http2/internal/hpack/HeaderEncoder"

/** Names in lower case; pseudo-headers first. */
export type Fields = Readonly<Record<string, string>>

/** Headers of a response, of either implementation of HTTP/2. */
export interface ResponseHeaders {
  readonly [name: string]: string | number | ReadonlyArray<string> | undefined
}

export class CallHeaders {
  readonly #fields: Fields
  readonly #added: Fields
  /** The fields that are repeated, for an encoder that remembers them; undefined if they belong to a single call. */
  readonly template: HeaderTemplate | undefined

  private constructor(fields: Fields, added: Fields, template: HeaderTemplate | undefined) {
    this.#fields = fields
    this.#added = added
    this.template = template
  }

  /** Headers that many calls share, which must keep the result. */
  static repeated(fields: Fields): CallHeaders {
    return new CallHeaders(fields, {}, new HeaderTemplate(Object.entries(fields).flat()))
  }

  static once(fields: Fields): CallHeaders {
    return new CallHeaders(fields, {}, undefined)
  }

  /** Adds fields of one call, whose names must be new. */
  with(fields: Fields): CallHeaders {
    return new CallHeaders(this.#fields, { ...this.#added, ...fields }, this.template)
  }

  get all(): Fields {
    return { ...this.#fields, ...this.#added }
  }

  /** The names and values that are not in the template. */
  get others(): ReadonlyArray<string> {
    return Object.entries(this.template === undefined ? this.all : this.#added).flat()
  }
}
