/** Whether `path` is one of `roots` or lies below one. All are absolute and without symbolic links. */
export function isBelow(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(`${root}/`));
}
