/** Whether a path is one of the roots or below one. All paths are absolute and without symbolic links. */
export function isPathInside(path: string, roots: readonly string[]): boolean {
  return roots.some((root) => path === root || path.startsWith(`${root}/`));
}
