import { lstat, mkdir, realpath, stat, symlink } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Material } from './attestation.ts';
import { CommitCheckouts, isCommit } from './build/commit-checkouts.ts';
import { ELEMENTS_PATH, elementsPathOf } from './dib-elements.ts';
import type { DiskImage } from './disk-image.ts';
import type { RestoredInputs, RestoreOptions } from './modules.ts';

/** Name of an element or a repository in the name of a material. */
const MATERIAL = /^(?<kind>element|repository) (?<name>[\w+-][\w.+-]*)$/;

/**
 * Restores elements and repositories of an earlier build. Each element gets a link in a directory in front of all others:
 * to a checkout of the recorded commit, else to the directory that it was in. The element source-repositories reads the
 * commits of repositories from variables.
 */
export async function restoreDibInputs(
  materials: readonly Material[],
  diskimage: DiskImage,
  { directory, environment, signal }: RestoreOptions,
): Promise<RestoredInputs> {
  const links = join(directory, 'elements');
  await mkdir(links, { recursive: true, mode: 0o700 });
  const { envVars = {} } = diskimage;
  const path = elementsPathOf(diskimage, environment);
  const present = path.split(':').filter(isAbsolute);
  const checkouts = new CommitCheckouts(join(directory, 'repositories'), environment, signal);
  const reasons = new Map<string, string>();
  const variables: Record<string, string> = {};
  for (const material of materials) {
    const { kind, name = '' } = MATERIAL.exec(material.name)?.groups ?? {};
    if (kind === 'element') {
      const { target, reason } = await restoreElement(name, material, present, checkouts);
      if (target !== undefined) await symlink(target, join(links, name));
      if (reason !== undefined) reasons.set(material.name, reason);
    } else if (kind === 'repository') {
      const { uri, digest } = material;
      const variable = referenceVariable(name);
      // A commit in env-vars is the recorded one; a branch may have moved.
      if (!isCommit(digest.gitCommit) || isCommit(String(envVars[variable]))) continue;
      const reason = await checkouts.reasonIfGone({ commit: digest.gitCommit, uri });
      if (reason === undefined) variables[variable] = digest.gitCommit;
      else reasons.set(material.name, reason);
    }
    signal.throwIfAborted();
  }
  return { variables: { ...variables, [ELEMENTS_PATH]: [links, path].filter(Boolean).join(':') }, reasons };
}

/** Variable of the element source-repositories that overrides the reference of a repository. */
function referenceVariable(repository: string): string {
  return `DIB_REPOREF_${repository.replaceAll(/[^A-Za-z0-9]/g, '_')}`;
}

/** Directory of an element for the second build, and the reason why it is not as recorded. */
async function restoreElement(
  name: string,
  { uri, digest: { gitCommit }, annotations: { directory, isModified } = {} }: Material,
  present: readonly string[],
  checkouts: CommitCheckouts,
): Promise<{ readonly target?: string; readonly reason?: string }> {
  if (typeof directory !== 'string' || !isAbsolute(directory)) return {};
  const now = await directoryAt(directory);
  const today = now === undefined ? {} : { target: now };
  if (isModified) return { ...today, reason: 'its directory differed from its commit' };
  if (!isCommit(gitCommit)) return today;
  const near = [now ?? directory, ...present];
  const checkout = await checkouts.checkOut({ commit: gitCommit, uri }, near, name);
  if ('reason' in checkout) return { ...today, reason: checkout.reason };
  const target = await elementIn(checkout.directory, directory);
  if (target !== undefined) return { target };
  return { ...today, reason: `commit ${gitCommit.slice(0, 12)} has no directory ${name}` };
}

/** The directory of an element in a checkout: the longest end of its former path that the commit has. */
async function elementIn(checkout: string, former: string): Promise<string | undefined> {
  const isTop = await lstat(join(former, '.git')).catch(() => undefined);
  if (isTop !== undefined) return checkout;
  const names = former.split('/').filter(Boolean);
  for (const start of names.keys()) {
    const found = await directoryAt(join(checkout, ...names.slice(start)));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A directory without symbolic links: diskimage-builder names an element by its real path. */
async function directoryAt(path: string): Promise<string | undefined> {
  const state = await stat(path).catch(() => undefined);
  return state?.isDirectory() ? await realpath(path) : undefined;
}
