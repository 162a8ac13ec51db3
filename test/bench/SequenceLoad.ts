/** A load of requests that continue sequences: so many sequences that each one is idle when its turn comes. */
import * as GrpcUnary from "@nereid/bench/internal/grpc/GrpcUnary"
import type { Child } from "./Child.ts"
import * as NodeRequest from "./NodeRequest.ts"
import * as Request from "./Request.ts"
import * as Side from "./Side.ts"

const ids = Array.from({ length: 256 }, (_, index) => index + 1)

/** Starts the sequences, measures by `run`, and ends them: a server that stops waits for open ones. */
export const within = async <A>(
  child: Child,
  { connections, concurrency }: { readonly connections: number; readonly concurrency: number },
  run: (side: Side.Side) => Promise<A>,
): Promise<A> => {
  const { grpc: port } = child.ports
  const send = (id: number, position: Request.Position) => NodeRequest.grpc(port, Request.sequence(id, position))
  const [first, ...others] = await Promise.all(
    ids.map(async (id): Promise<GrpcUnary.UnaryRequest> => {
      const { length: replyLength } = await send(id, "start")
      return { message: Request.sequence(id, "middle").body, replyLength }
    }),
  )
  if (first === undefined) throw new Error("There is a sequence. This is a bug of the benchmark.")
  const { path } = Request.sequence(1, "middle")
  const target = GrpcUnary.target({ host: "127.0.0.1", port }, { path, requests: [first, ...others] })
  const result = await run(Side.server(child, target, connections, concurrency))
  await Promise.all(ids.map((id) => send(id, "end")))
  return result
}
