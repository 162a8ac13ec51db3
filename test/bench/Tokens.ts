/** The tokens of a streamed answer, as the benchmark's model and its baseline produce them. */

const words = ["The", " server", " streams", " one", " token", " after", " another", ",", " as", " models", " do", "."]

export interface Token {
  readonly TOKEN: string
}

/** One token after another, each as a promise. */
export async function* tokens(count: number): AsyncGenerator<Token> {
  for (let index = 0; index < count; index++) yield { TOKEN: words[index % words.length] ?? "" }
}
