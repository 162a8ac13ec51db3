/** Connections that wait for a version. */
import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { HeldPorts } from "./HeldPorts.ts"

const local = { host: "127.0.0.1", port: 0 }

const opened = async (ports: HeldPorts) => {
  const reply = await ports.open("HTTP", local)
  if (reply.type !== "listening") return expect.unreachable(reply.type)
  return reply.address.port
}

const connected = async (port: number) => {
  const socket = connect(port, "127.0.0.1")
  onTestFinished(() => void socket.destroy())
  await once(socket, "connect")
  return socket
}

it("keeps a port open, and its connections until there is a version; a version that has ended gets none", async () => {
  const ports = new HeldPorts()
  onTestFinished(() => ports.close())
  const port = await opened(ports)
  expect(await opened(ports)).toBe(port)
  ports.sendTo(() => false)
  await Promise.all([connected(port), connected(port)])
  const received: Array<string> = []
  const { promise, resolve } = Promise.withResolvers<void>()
  ports.sendTo((id, socket) => {
    socket.destroy()
    if (received.push(id) === 3) resolve()
    return true
  })
  await connected(port)
  await promise
  expect(received).toEqual(["HTTP", "HTTP", "HTTP"])
})

it("closes connections beyond those that may wait", async () => {
  const ports = new HeldPorts()
  onTestFinished(() => ports.close())
  const port = await opened(ports)
  const sockets: Array<Socket> = []
  const closed: Array<Promise<unknown>> = []
  for (let index = 0; index < 1026; index++) {
    const socket = await connected(port)
    socket.on("error", () => {})
    sockets.push(socket)
    if (index >= 1024) closed.push(once(socket.resume(), "close"))
  }
  await Promise.all(closed)
  expect(sockets.filter((socket) => socket.destroyed)).toHaveLength(2)
})

it("says why a port cannot be opened, and tries again for the next version", async () => {
  const ports = new HeldPorts()
  onTestFinished(() => ports.close())
  const blocker = createServer().listen(0, "127.0.0.1")
  await once(blocker, "listening")
  const { port } = blocker.address() as AddressInfo
  const address = { host: "127.0.0.1", port }
  expect(await ports.open("HTTP", address)).toMatchObject({
    type: "refused",
    reason: expect.stringContaining("EADDRINUSE"),
  })
  blocker.close()
  await once(blocker, "close")
  expect(await ports.open("HTTP", address)).toEqual({ type: "listening", id: "HTTP", address })
})
