/**
 * A store with the interface of S3, as a program that download.ts measures: one object of zeros, and a limit for each
 * connection, as the large stores have one. Its arguments are the bytes of the object, and the bytes per second with 0
 * for no limit. Prints its port.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const [, , bytes = 0, rate = 0] = process.argv.map(Number)

const piece = Buffer.alloc(256 * 1024)

const listing = `<ListBucketResult><IsTruncated>false</IsTruncated>
<Contents><Key>m/weights.bin</Key><ETag>"1"</ETag><Size>${bytes}</Size></Contents></ListBucketResult>`

/** Sends a number of zeros, at the rate. */
const send = async (response: ServerResponse, length: number): Promise<void> => {
  const startedAt = performance.now()
  for (let sent = 0; sent < length && !response.destroyed;) {
    const part = piece.subarray(0, Math.min(piece.length, length - sent))
    sent += part.length
    const drained = response.write(part) || new Promise((resolve) => response.once("drain", resolve))
    const early = rate === 0 ? 0 : (sent / rate) * 1000 - (performance.now() - startedAt)
    await Promise.all([drained, early > 0 ? new Promise((resolve) => setTimeout(resolve, early)) : undefined])
  }
  response.end()
}

const server = createServer((request, response) => {
  if (request.url?.includes("list-type") === true) return void response.end(listing)
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? []
  const [from, to] = start === undefined ? [0, bytes - 1] : [Number(start), Number(end)]
  response.writeHead(start === undefined ? 200 : 206, {
    etag: '"1"',
    "content-length": to - from + 1,
    ...(start !== undefined && { "content-range": `bytes ${from}-${to}/${bytes}` }),
  })
  if (request.method === "HEAD") return void response.end()
  void send(response, to - from + 1)
})
server.listen(0, "127.0.0.1", () => console.log(`port ${(server.address() as AddressInfo).port}`))
