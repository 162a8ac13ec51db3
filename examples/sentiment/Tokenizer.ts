/**
 * Tokenizes texts with Hugging Face's library and the network's tokenizer.json. The library ignores the truncation in
 * that file.
 */
import { readFile } from "node:fs/promises"
import { Tokenizer as HuggingFace } from "@huggingface/tokenizers"

export interface Tokenizer {
  /** Limited to the number in the file; the last id is always the end token. */
  readonly encode: (text: string) => ReadonlyArray<number>
}

export const load = async (file: URL): Promise<Tokenizer> => {
  const document: { readonly truncation: { readonly max_length: number } } = JSON.parse(await readFile(file, "utf8"))
  const tokenizer = new HuggingFace(document, {})
  const maxLength = document.truncation.max_length
  return {
    encode: (text) => {
      const { ids } = tokenizer.encode(text)
      return ids.length <= maxLength ? ids : [...ids.slice(0, maxLength - 1), ...ids.slice(-1)]
    },
  }
}
