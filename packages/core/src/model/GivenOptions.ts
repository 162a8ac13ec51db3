/** Options whose exact type determines the type of a layer. An unknown name is a compile error that names it. */
export type GivenOptions<Options, Known> = Options & {
  readonly [K in Exclude<keyof Options, keyof Known>]: { readonly mistake: `there is no option ${K & string}` }
}
