import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Image, ImageRepository } from '../src/index.ts';
import type { ImageRepositoryEvents } from '../src/repository.ts';
import { RecordingLogger } from './recording-logger.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/** Longest that a test waits for an event, in milliseconds: far more than it takes. */
const PATIENCE = 20_000;

/** A repository in a directory of its own, and all that it told. */
export class RepositoryFixture {
  /** `images-dir`. */
  readonly directory: string;
  /** A directory on the same file system. */
  readonly outside: string;
  readonly logger: RecordingLogger = new RecordingLogger();
  /** `added 1`, `removed 1` and so on. */
  readonly events: string[] = [];
  #repository: ImageRepository | undefined;

  private constructor(directory: string, outside: string) {
    this.directory = directory;
    this.outside = outside;
  }

  /** Makes the directories, without opening the repository. */
  static async create(t: TestContext): Promise<RepositoryFixture> {
    const root = await temporaryDirectory(t, () => fixture.close());
    const fixture = new RepositoryFixture(join(root, 'images'), join(root, 'outside'));
    await mkdir(fixture.directory);
    await mkdir(fixture.outside);
    return fixture;
  }

  /** Makes the directories and opens the repository. */
  static async open(t: TestContext): Promise<RepositoryFixture> {
    const fixture = await RepositoryFixture.create(t);
    await fixture.open();
    return fixture;
  }

  get repository(): ImageRepository {
    if (this.#repository === undefined) throw new Error('the repository is not open');
    return this.#repository;
  }

  async open(): Promise<ImageRepository> {
    const repository = await ImageRepository.open(this.directory, { logger: this.logger });
    this.#repository = repository;
    for (const name of ['added', 'changed', 'removed'] as const) {
      repository.on(name, (image: Image) => this.events.push(`${name} ${image.id}`));
    }
    repository.on('deleteForgotten', (imageId) => this.events.push(`deleteForgotten ${imageId}`));
    return repository;
  }

  async close(): Promise<void> {
    await this.#repository?.close();
    this.#repository = undefined;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  async write(name: string, content: string | Buffer = 'content'): Promise<void> {
    await writeFile(this.path(name), content);
  }

  /** The image or image id of the next event. */
  async next<Name extends keyof ImageRepositoryEvents>(name: Name): Promise<ImageRepositoryEvents[Name][0]> {
    const [subject] = await once(this.repository, name, { signal: AbortSignal.timeout(PATIENCE) });
    return subject as ImageRepositoryEvents[Name][0];
  }
}
