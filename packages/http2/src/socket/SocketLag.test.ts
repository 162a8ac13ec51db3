import { expect, it } from "vitest"
import { SocketLag } from "./SocketLag.ts"

it("is the time since the ping while that is not acknowledged, and then the time until it was", () => {
  const lag = new SocketLag(0)
  lag.acknowledged(0)
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
  const lag = new SocketLag(0)
  lag.acknowledged(0)
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

it("does not count the round trip of a far peer", () => {
  const lag = new SocketLag(0)
  lag.acknowledged(200)
  lag.isBehind(1000)
  expect(lag.at(1190)).toBe(0)
  expect(lag.at(1230)).toBe(30)
  lag.acknowledged(1240)
  expect(lag.at(1241)).toBe(40)
})

it("takes the shortest acknowledgement for the round trip", () => {
  const lag = new SocketLag(0)
  // The settings of a client that was slow to start.
  expect(lag.isBehind(10)).toBe(false)
  expect(lag.at(300)).toBe(0)
  lag.acknowledged(400)
  lag.isBehind(410)
  expect(lag.at(500)).toBe(0)
  lag.hasRead(true)
  lag.acknowledged(440)
  lag.isBehind(600)
  expect(lag.at(640)).toBe(10)
})
