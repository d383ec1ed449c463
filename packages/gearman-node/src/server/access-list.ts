import { checkNames, type OptionNames } from '../argument-checks.ts';

/** A right to functions: submit jobs, register as a worker, or administer (limit, create, drop, cancel). */
export type AccessRight = 'submit' | 'register' | 'administer';

/**
 * Rights by the common name of a certificate: for each right, the prefixes of the function names that it covers. The
 * empty prefix covers all functions, and with `administer` the command `shutdown`. Everything else is denied. Every
 * connected peer may read status and lists.
 */
export type AccessRules = Readonly<Record<string, Readonly<Partial<Record<AccessRight, readonly string[]>>>>>;

const RIGHTS: OptionNames<AccessRules[string]> = { submit: true, register: true, administer: true };

/** Checks requests against {@link AccessRules}. */
export class AccessList {
  /** Prefixes by certificate and right, with one character per byte, like function names. */
  readonly #prefixes = new Map<string, Map<string, readonly string[]>>();

  /** @throws GearmanError `invalid-argument` for an unknown right */
  constructor(rules: AccessRules) {
    for (const [certificate, rights] of Object.entries(rules)) {
      checkNames(`the access rules of ${certificate}`, rights, RIGHTS);
      const encoded = Object.entries(rights).map(
        ([right, prefixes]) =>
          [right, prefixes.map((prefix) => Buffer.from(prefix).toString('latin1'))] as const,
      );
      this.#prefixes.set(certificate, new Map(encoded));
    }
  }

  /**
   * @param certificate the common name; undefined for a peer without a certificate, which has no rights
   * @param functionName one character per byte
   */
  permits(certificate: string | undefined, right: AccessRight, functionName: string): boolean {
    if (certificate === undefined) return false;
    const prefixes = this.#prefixes.get(certificate)?.get(right) ?? [];
    return prefixes.some((prefix) => functionName.startsWith(prefix));
  }
}
