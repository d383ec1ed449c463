/**
 * Where a program lies. A bare name is looked for in PATH, as a shell does it.
 *
 * @param absolute makes a path absolute
 */
export function programPath(name: string, absolute: (path: string) => string): string {
  return name.includes('/') ? absolute(name) : name;
}
