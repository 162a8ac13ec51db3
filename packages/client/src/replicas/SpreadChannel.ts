/** Several connections to one replica as one channel: each call takes the connection with the fewest calls. */
import type { ServerChannel } from "../channel/Channel.ts"

interface Connection {
  readonly channel: ServerChannel
  calls: number
}

/** At least one channel is required. The health check uses the first. */
export const make = (first: ServerChannel, others: ReadonlyArray<ServerChannel>): ServerChannel => {
  const connections: ReadonlyArray<Connection> = [first, ...others].map((channel) => ({ channel, calls: 0 }))
  let next = 0
  /** Takes the next connection of those with the fewest calls. */
  const take = (): { readonly channel: ServerChannel; readonly release: () => void } => {
    let best: Connection = { channel: first, calls: Infinity }
    for (let index = 0; index < connections.length; index++) {
      const candidate = connections[(next + index) % connections.length]
      if (candidate !== undefined && candidate.calls < best.calls) best = candidate
    }
    next = (connections.indexOf(best) + 1) % connections.length
    best.calls += 1
    let isOpen = true
    const release = () => {
      if (isOpen) best.calls -= 1
      isOpen = false
    }
    return { channel: best.channel, release }
  }
  return {
    infer: (wire, timeoutMs, reply) => {
      const { channel, release } = take()
      const cancel = channel.infer(wire, timeoutMs, (outcome, cause) => {
        release()
        reply(outcome, cause)
      })
      return () => {
        release()
        cancel()
      }
    },
    stream: (wire, timeoutMs, receiver, model) => {
      const { channel, release } = take()
      const end: typeof receiver.end = (outcome, cause) => {
        release()
        receiver.end(outcome, cause)
      }
      const { cancel, flow } = channel.stream(wire, timeoutMs, { response: receiver.response, end }, model)
      return {
        cancel: () => {
          release()
          cancel()
        },
        flow,
      }
    },
    ready: (timeoutMs, reply) => first.ready(timeoutMs, reply),
    close: () => Promise.all(connections.map(({ channel }) => channel.close())).then(() => {}),
  }
}
