import { readdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readAttestation } from './attestation.ts';
import { directoryDigest, fileDigest } from './build/file-digest.ts';
import { fileMaterial } from './build/file-material.ts';
import { gitUri } from './build/source-repository.ts';
import { isPathInside } from './cleanup/mounts.ts';
import type { FullBuildContext } from './context.ts';
import { ELEMENTS_PATH, elementsOfDib, findElements } from './dib-elements.ts';
import { findProgram } from './process/find-program.ts';
import type { Environment } from './process/inherited-environment.ts';

/** Maximum size of a base image with a digest, in bytes. */
const MAX_BASE_IMAGE_SIZE = 64 * 2 ** 30;

/**
 * Version line of disk-image-create, after a time and a bar. The first such line counts, because elements run later.
 */
const VERSION = /(?:^|\| )diskimage-builder version (\S+)$/;
const ELEMENTS = /(?:^|\| )Expanded element dependencies to: (.*)$/;

/** Line that names a file in disk-image-create's cache with which an image begins. */
const BASE_IMAGE = /(?:^|\| )(?:Extracting base root image from (?<path>\S+)|(?<name>[\w.+-]+): OK)$/;

/** Line of `dib-manifest-git-…`: name, `git`, path in the image, address, commit. */
const GIT_MANIFEST = /^(?<name>\S+) git \S+ (?<url>\S+) (?<commit>[0-9a-f]{40,64})$/;

/**
 * Collects the materials of a run of disk-image-create from its output and its manifests.
 *
 * @param environment environment of the command
 */
export function dibMaterials(context: FullBuildContext, command: string, environment: Environment) {
  const { addMaterial, findRepository, directory: cwd, signal } = context;
  const { DIB_IMAGE_CACHE, HOME = '/', DIB_LOCAL_IMAGE: local, PATH } = environment;
  const cache = DIB_IMAGE_CACHE || join(HOME, '.cache/image-create');
  const baseImages = new Set<string>();
  let version: string | undefined;
  /**
   * Computation of the element materials. It starts before the first element runs, because the repository may change
   * during a long build.
   */
  let elements: Promise<void> | undefined;

  const addElements = async (names: readonly string[]): Promise<void> => {
    const own = (environment[ELEMENTS_PATH] ?? '').split(':').filter(Boolean);
    const directories = [...own.map((path) => resolve(cwd, path)), ...(await elementsOfDib(command, PATH))];
    const found = await findElements(directories);
    for (const element of names.toSorted()) {
      const directory = found.get(element);
      if (directory === undefined) continue;
      const repository = await findRepository(directory);
      const isModified = repository?.isModified(directory);
      const dirHash = isModified === false ? undefined : await directoryDigest(directory, signal);
      addMaterial({
        name: `element ${element}`,
        ...(repository?.uri !== undefined && { uri: repository.uri }),
        digest: { ...(repository && { gitCommit: repository.commit }), ...(dirHash && { dirHash }) },
        annotations: { directory, ...(isModified !== undefined && { isModified }) },
      });
    }
  };

  /** Adds the repositories that the element source-repositories fetched. */
  const addRepositories = async (manifests: string): Promise<void> => {
    const names = await readdir(manifests).catch(() => []);
    for (const name of names.filter((one) => one.startsWith('dib-manifest-git-'))) {
      const text = (await readAttestation(join(manifests, name)).catch(() => undefined)) ?? '';
      for (const line of text.split('\n')) {
        const { name: repository, url, commit } = GIT_MANIFEST.exec(line)?.groups ?? {};
        if (repository === undefined || url === undefined || commit === undefined) continue;
        const material = { name: `repository ${repository}`, uri: gitUri(url, commit) };
        addMaterial({ ...material, digest: { gitCommit: commit } });
      }
    }
  };

  const addBaseImage = async (path: string): Promise<void> => {
    const sha256 = await fileDigest(path, { limit: MAX_BASE_IMAGE_SIZE, signal });
    if (sha256 !== undefined) addMaterial({ name: 'base image', digest: { sha256 }, annotations: { path } });
  };

  return {
    onLine(line: string): void {
      version ??= VERSION.exec(line)?.[1];
      const expanded = elements === undefined ? ELEMENTS.exec(line)?.[1] : undefined;
      if (expanded !== undefined) {
        elements = addElements(expanded.split(/\s+/).filter(Boolean));
        elements.catch(() => {}); // report() throws the error
      }
      const { path, name } = BASE_IMAGE.exec(line)?.groups ?? {};
      const image = path ?? (name && join(cache, name));
      if (image && baseImages.size < 100) baseImages.add(image);
    },
    /**
     * Reports all materials to the context, once the command has succeeded.
     *
     * @param output path of the image without extension
     */
    async report(output: string): Promise<void> {
      const program = findProgram(command, PATH);
      if ('path' in program) {
        const material = await fileMaterial('diskimage-builder', program.path, context);
        addMaterial({ ...material, annotations: { ...(version && { version }), ...material.annotations } });
      }
      await elements;
      await addRepositories(`${output}.d/dib-manifests`);
      if (local) await addBaseImage(local);
      const root = await realpath(cache).catch(() => undefined);
      for (const image of baseImages) {
        const path = await realpath(image).catch(() => undefined);
        // Elements write the output, so a path outside the cache is not read.
        if (path && root && isPathInside(path, [root])) await addBaseImage(path);
        signal.throwIfAborted();
      }
    },
  };
}
