/** Chooses the next token from the logits of a network. */

/**
 * A token by chance, the likelier the higher its logit.
 *
 * @param temperature above 0; lower ones prefer likely tokens. 0 chooses the likeliest token.
 * @param random from 0 up to 1, without 1
 */
export const choose = (logits: ArrayLike<number>, temperature: number, random: number): number => {
  const likeliest = argmax(logits)
  if (temperature === 0) return likeliest
  const highest = logits[likeliest] ?? 0
  const weights = new Float64Array(logits.length)
  let sum = 0
  for (let token = 0; token < logits.length; token++) {
    const weight = Math.exp(((logits[token] ?? 0) - highest) / temperature)
    weights[token] = weight
    sum += weight
  }
  let rest = random * sum
  for (let token = 0; token < weights.length; token++) {
    rest -= weights[token] ?? 0
    if (rest < 0) return token
  }
  return likeliest
}

const argmax = (logits: ArrayLike<number>): number => {
  let best = 0
  for (let token = 1; token < logits.length; token++) if ((logits[token] ?? 0) > (logits[best] ?? 0)) best = token
  return best
}
