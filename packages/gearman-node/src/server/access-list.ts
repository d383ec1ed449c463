/** What a peer may do with a function: have it run, offer it, or limit, make, drop and cancel what is of it. */
export type AccessRight = 'submit' | 'register' | 'administer';

/**
 * Who may do what: for each certificate's common name, the prefixes of the functions that each right extends to. An
 * empty prefix is that of all functions, and for `administer` of the server too, which `shutdown` ends. What is not
 * here is refused; to look at states and lists is free to all who are let in.
 */
export type AccessRules = Readonly<Record<string, Readonly<Partial<Record<AccessRight, readonly string[]>>>>>;

/** {@link AccessRules}, to be asked. */
export class AccessList {
  /** By certificate and right; prefixes have one character per byte, as function names do. */
  readonly #prefixes = new Map<string, Map<string, readonly string[]>>();

  constructor(rules: AccessRules) {
    for (const [certificate, rights] of Object.entries(rules)) {
      const encoded = Object.entries(rights).map(
        ([right, prefixes]) =>
          [right, prefixes.map((prefix) => Buffer.from(prefix).toString('latin1'))] as const,
      );
      this.#prefixes.set(certificate, new Map(encoded));
    }
  }

  /**
   * @param certificate the common name; undefined for a peer without a certificate, which may do nothing
   * @param functionName one character per byte
   */
  permits(certificate: string | undefined, right: AccessRight, functionName: string): boolean {
    if (certificate === undefined) return false;
    const prefixes = this.#prefixes.get(certificate)?.get(right) ?? [];
    return prefixes.some((prefix) => functionName.startsWith(prefix));
  }
}
