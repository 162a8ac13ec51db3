/** Models of all examples, which `npm start` serves, and an additional route for one of them. */
import { Sentiment } from "./sentiment/contract.ts"

export { AddSub, AddSubLive } from "./add-sub/server.ts"
export { Digits, DigitsLive } from "./digits/server.ts"
export { Writer, WriterLive } from "./generation/server.ts"
export { PhotographedDigit, PhotographedDigitLive, Preprocess, PreprocessLive } from "./image/server.ts"
export {
  Bert,
  BertLive,
  Sentiment,
  SentimentLive,
  Tokenize,
  TokenizeLive,
  Verdict,
  VerdictLive,
} from "./sentiment/server.ts"
export { Words, WordsLive } from "./streaming/server.ts"

export const routes = { "POST /sentiment": Sentiment }
