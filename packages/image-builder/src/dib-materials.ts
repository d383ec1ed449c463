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

/** Collects the materials of a run of disk-image-create from its output and its manifests. */
export class DibMaterials {
  readonly #context: FullBuildContext;
  readonly #command: string;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #baseImages = new Set<string>();
  #version: string | undefined;
  /**
   * Computation of the element materials. It starts before the first element runs, because the repository may change
   * during a long build.
   */
  #elements: Promise<void> | undefined;

  /** @param environment environment of the command */
  constructor(
    context: FullBuildContext,
    command: string,
    environment: Readonly<Record<string, string | undefined>>,
  ) {
    this.#context = context;
    this.#command = command;
    this.#environment = environment;
  }

  onLine(line: string): void {
    this.#version ??= VERSION.exec(line)?.[1];
    const elements = this.#elements === undefined ? ELEMENTS.exec(line)?.[1] : undefined;
    if (elements !== undefined) {
      this.#elements = this.#addElements(elements.split(/\s+/).filter(Boolean));
      this.#elements.catch(() => {}); // report() throws the error
    }
    const { path, name } = BASE_IMAGE.exec(line)?.groups ?? {};
    const image = path ?? (name && join(this.#cache(), name));
    if (image && this.#baseImages.size < 100) this.#baseImages.add(image);
  }

  /**
   * Reports all materials to the context, once the command has succeeded. @param output path of the image without
   * extension
   */
  async report(output: string): Promise<void> {
    const { addMaterial, environment, signal } = this.#context;
    const program = findProgram(this.#command, this.#environment.PATH ?? environment.PATH);
    if ('path' in program) {
      const material = await fileMaterial('diskimage-builder', program.path, this.#context);
      const version = this.#version === undefined ? {} : { version: this.#version };
      addMaterial({ ...material, annotations: { ...version, ...material.annotations } });
    }
    await this.#elements;
    await this.#addRepositories(`${output}.d/dib-manifests`);
    const { DIB_LOCAL_IMAGE: local } = this.#environment;
    if (local) await this.#addBaseImage(local);
    const cache = await realpath(this.#cache()).catch(() => undefined);
    for (const image of this.#baseImages) {
      const path = await realpath(image).catch(() => undefined);
      // Elements write the output, so a path outside the cache is not read.
      if (path && cache && isPathInside(path, [cache])) await this.#addBaseImage(path);
      signal.throwIfAborted();
    }
  }

  async #addElements(elements: readonly string[]): Promise<void> {
    const { addMaterial, findRepository, directory: cwd, signal } = this.#context;
    const own = (this.#environment[ELEMENTS_PATH] ?? '').split(':').filter(Boolean);
    const directories = [
      ...own.map((path) => resolve(cwd, path)),
      ...(await elementsOfDib(this.#command, this.#environment.PATH)),
    ];
    const found = await findElements(directories);
    for (const element of elements.toSorted()) {
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
  }

  /** Adds the repositories that the element source-repositories fetched. */
  async #addRepositories(manifests: string): Promise<void> {
    const names = await readdir(manifests).catch(() => []);
    for (const name of names.filter((one) => one.startsWith('dib-manifest-git-'))) {
      const text = (await readAttestation(join(manifests, name)).catch(() => undefined)) ?? '';
      for (const line of text.split('\n')) {
        const { name: repository, url, commit } = GIT_MANIFEST.exec(line)?.groups ?? {};
        if (repository === undefined || url === undefined || commit === undefined) continue;
        const material = { name: `repository ${repository}`, uri: gitUri(url, commit) };
        this.#context.addMaterial({ ...material, digest: { gitCommit: commit } });
      }
    }
  }

  async #addBaseImage(path: string): Promise<void> {
    const { addMaterial, signal } = this.#context;
    const sha256 = await fileDigest(path, { limit: MAX_BASE_IMAGE_SIZE, signal });
    if (sha256 !== undefined) addMaterial({ name: 'base image', digest: { sha256 }, annotations: { path } });
  }

  #cache(): string {
    const { DIB_IMAGE_CACHE: cache, HOME: home = '/' } = {
      ...this.#context.environment,
      ...this.#environment,
    };
    return cache || join(home, '.cache/image-create');
  }
}
