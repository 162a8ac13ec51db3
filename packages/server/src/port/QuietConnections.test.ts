/** When connections of a stopping port are closed, by virtual time. HttpListener.test.ts has a stop over sockets. */
import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import * as QuietConnections from "./QuietConnections.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const request = (socket: Socket, method: string) => Object.assign(new IncomingMessage(socket), { method })

/** Two connections of a stopping port, of which `pending` have a request without a response. */
const stopping = () => {
  const idle = new Socket()
  const other = new Socket()
  const pending = new Set<Socket>()
  const open = () => [idle, other].filter((socket) => !socket.destroyed)
  return { idle, other, pending, quiet: QuietConnections.close(open, (socket) => pending.has(socket)) }
}

it("an idle connection ends when its client has had time to send, and closes if the client keeps its side open", () => {
  const { idle, quiet } = stopping()
  vi.advanceTimersByTime(149)
  expect(idle.writableEnded).toBe(false)
  vi.advanceTimersByTime(1)
  expect([idle.writableEnded, idle.destroyed]).toEqual([true, false])
  vi.advanceTimersByTime(150)
  expect(idle.destroyed).toBe(true)
  quiet.stop()
})

it("a connection with a pending response stays open, and others do not wait for it", () => {
  const { idle, other, pending, quiet } = stopping()
  pending.add(other)
  vi.advanceTimersByTime(1_000)
  expect([idle.destroyed, other.writableEnded]).toEqual([true, false])
  pending.delete(other)
  vi.advanceTimersByTime(300)
  expect(other.destroyed).toBe(true)
  quiet.stop()
})

it("an idle connection stays open while requests to infer arrive on another one, whose pool may take it next", () => {
  const { idle, other, quiet } = stopping()
  for (let sent = 0; sent < 100; sent++) {
    quiet.active(request(other, "POST"))
    vi.advanceTimersByTime(100)
    expect(idle.writableEnded).toBe(false)
  }
  vi.advanceTimersByTime(50)
  expect([idle.writableEnded, other.writableEnded]).toEqual([true, true])
  quiet.stop()
})

it("probes keep their own connection open, and no other", () => {
  const { idle, other, quiet } = stopping()
  for (let sent = 0; sent < 10; sent++) {
    quiet.active(request(other, sent % 2 === 0 ? "GET" : "HEAD"))
    vi.advanceTimersByTime(100)
  }
  expect([idle.destroyed, other.writableEnded]).toEqual([true, false])
  quiet.stop()
})
