import { expect, it } from "vitest"
import { SocketLag } from "./SocketLag.ts"

it("is the time since the ping while that is not acknowledged, and then the time until it was", () => {
  const lag = new SocketLag()
  expect(lag.at(0)).toBe(0)
  expect(lag.isBehind(10)).toBe(true)
  expect(lag.isBehind(20)).toBe(false)
  expect(lag.at(40)).toBe(30)
  lag.acknowledged(60)
  expect(lag.at(61)).toBe(50)
  expect(lag.isBehind(70)).toBe(true)
  // The next one is not known to be less before its acknowledgement.
  expect(lag.at(80)).toBe(50)
  lag.acknowledged(85)
  expect(lag.at(90)).toBe(15)
})

it("is nothing once the socket was read empty, also for the ping that was sent before", () => {
  const lag = new SocketLag()
  lag.isBehind(0)
  lag.hasRead(false)
  expect(lag.at(100)).toBe(100)
  lag.hasRead(true)
  expect(lag.at(101)).toBe(0)
  expect(lag.isBehind(102)).toBe(false)
  lag.acknowledged(103)
  expect(lag.at(104)).toBe(0)
  expect(lag.isBehind(105)).toBe(true)
  expect(lag.at(115)).toBe(10)
})
