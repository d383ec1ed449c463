/** The first member of both, looked for in the smaller one. */
export function firstInBoth<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): T | undefined {
  const [smaller, larger] = a.size <= b.size ? [a, b] : [b, a];
  for (const member of smaller) {
    if (larger.has(member)) return member;
  }
  return undefined;
}
