/** A client of the model, typed by its contract. */
import { Client } from "@nereid/client"
import { Shout } from "@nereid-workspace/contract"

/**
 * Returns each text in upper case, in the order of the texts. The requests are sent at once, so that they share a
 * batch.
 *
 * @param url of the server: grpc://host:port, or http://host:port
 */
export const shoutAll = async (url: string, texts: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const shout = await Client.connect(Shout, { url })
  try {
    const responses = await Promise.all(texts.map((TEXT) => shout.infer({ TEXT })))
    return responses.map(({ LOUD }) => LOUD)
  } finally {
    await shout.close()
  }
}
