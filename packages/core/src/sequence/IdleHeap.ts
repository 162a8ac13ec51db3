/**
 * Idle sequences with limits of their own, in a binary heap: the first one expires first. Joining and leaving takes
 * logarithmic time.
 */

/** A sequence in the heap. */
export interface IdleMember {
  /** When it expires. Does not change in the heap. */
  readonly expiresAt: number
  /** Its place; -1 outside of the heap. */
  place: number
}

export class IdleHeap<T extends IdleMember> {
  readonly #members: Array<T> = []

  get first(): T | undefined {
    return this.#members[0]
  }

  add(member: T): void {
    this.#rise(member, this.#members.length)
  }

  /** Has no effect for a member that is not in the heap. */
  delete(member: T): void {
    const { place } = member
    if (place < 0) return
    member.place = -1
    const last = this.#members.pop()
    if (last === undefined || last === member) return
    const parent = this.#members[(place - 1) >> 1]
    if (parent !== undefined && place > 0 && last.expiresAt < parent.expiresAt) this.#rise(last, place)
    else this.#sink(last, place)
  }

  /** Puts a member at this place, or at one nearer to the first. */
  #rise(member: T, place: number): void {
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#members[above]
      if (parent === undefined || parent.expiresAt <= member.expiresAt) break
      this.#put(parent, place)
      place = above
    }
    this.#put(member, place)
  }

  /** Puts a member at this place, or at one further from the first. */
  #sink(member: T, place: number): void {
    for (;;) {
      const left = 2 * place + 1
      const [one, other] = [this.#members[left], this.#members[left + 1]]
      if (one === undefined) break
      const child = other !== undefined && other.expiresAt < one.expiresAt ? other : one
      if (child.expiresAt >= member.expiresAt) break
      const below = child.place
      this.#put(child, place)
      place = below
    }
    this.#put(member, place)
  }

  #put(member: T, place: number): void {
    this.#members[place] = member
    member.place = place
  }
}
