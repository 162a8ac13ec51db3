export { writeDoubles } from "./Doubles"
export {
  decimals,
  elements,
  elementsSize,
  end,
  exponents,
  factors,
  largestPower,
  powers,
  powersOfTwo,
  text,
  textSize,
  thresholds,
} from "./Memory"
export { readDoubles, readIntegers, readSingles } from "./Numbers"
export { writeSingles } from "./Singles"
