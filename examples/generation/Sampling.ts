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
  const weights = Array.from(logits, (logit) => Math.exp((logit - highest) / temperature))
  let rest = random * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [token, weight] of weights.entries()) {
    rest -= weight
    if (rest < 0) return token
  }
  return likeliest
}

const argmax = (logits: ArrayLike<number>): number => {
  let best = 0
  for (let token = 1; token < logits.length; token++) if ((logits[token] ?? 0) > (logits[best] ?? 0)) best = token
  return best
}
