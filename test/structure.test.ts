/**
 * The graph algorithms of `.ci/structure.ts`, which measures how the folders and files of a package depend on each
 * other.
 */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { backEdges, components, edges, type Graph, mutual } from "../.ci/structure/Graph.ts"

/** From text such as "a→b b→c". */
const graph = (text: string): Graph => {
  const targets = new Map<string, Set<string>>()
  for (const edge of text.split(" ")) {
    const [from = "", to = ""] = edge.split("→")
    for (const node of [from, to]) if (!targets.has(node)) targets.set(node, new Set())
    targets.get(from)?.add(to)
  }
  return targets
}

/** Tries every order of the nodes. */
const minBackEdges = (of: Graph): number => {
  const orders = (nodes: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
    nodes.length === 0
      ? [[]]
      : nodes.flatMap((node) => orders(nodes.filter((other) => other !== node)).map((rest) => [node, ...rest]))
  const count = (order: ReadonlyArray<string>) =>
    edges(of).filter(([from, to]) => order.indexOf(from) < order.indexOf(to)).length
  return Math.min(...orders([...of.keys()]).map(count))
}

describe("components", () => {
  it.each([
    ["a→b b→c a→c", []],
    ["a→b b→a b→c", [["a", "b"]]],
    ["a→b b→c c→a", [["a", "b", "c"]]],
    [
      "a→b b→a b→c c→d d→e e→c",
      [
        ["c", "d", "e"],
        ["a", "b"],
      ],
    ],
    ["a→b b→c c→a c→d d→b", [["a", "b", "c", "d"]]],
  ])("of %s: %j", (text, expected) => {
    expect(components(graph(text))).toEqual(expected)
  })
})

it("pairs that import each other are listed once", () => {
  expect(mutual(graph("a→b b→a b→c c→d d→c"))).toEqual([
    ["a", "b"],
    ["c", "d"],
  ])
})

describe("back edges", () => {
  it.each([
    ["a→b b→c a→c", 0],
    ["a→b b→c c→a", 1],
    ["a→b b→a b→c c→a", 1],
    ["a→b b→a b→c c→b c→a a→c", 3],
    ["a→b b→a c→d d→c", 2],
  ])("of %s: %i", (text, expected) => {
    expect(backEdges(graph(text))).toHaveLength(expected)
  })

  const graphs = fc
    .uniqueArray(
      fc
        .tuple(fc.constantFrom(..."abcdef"), fc.constantFrom(..."abcdef"))
        .filter(([from, to]) => from !== to)
        .map(([from, to]) => `${from}→${to}`),
      { minLength: 1, maxLength: 20 },
    )
    .map((all) => graph(all.join(" ")))

  it("are as few as in the best of all orders", () => {
    fc.assert(
      fc.property(graphs, (of) => {
        expect(backEdges(of)).toHaveLength(minBackEdges(of))
      }),
      { numRuns: 50 },
    )
  })

  it("of a large graph leave no cycle, and are as few as found by a local search", () => {
    fc.assert(
      fc.property(graphs, (of) => {
        const found = new Set(backEdges(of, 0).map(String))
        const rest = edges(of).filter((edge) => !found.has(String(edge)))
        expect(components(graph(rest.map(([from, to]) => `${from}→${to}`).join(" ")))).toEqual([])
        expect(found.size).toBeLessThanOrEqual(minBackEdges(of) + 2)
      }),
      { numRuns: 50 },
    )
  })
})
