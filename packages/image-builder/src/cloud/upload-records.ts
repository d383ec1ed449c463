import { cloudError } from '../cloud-error.ts';
import { RecordDirectory } from '../record-directory.ts';
import { safeName } from '../repository/state-directory.ts';
import type { SettingsOf, SettingsSchema } from '../settings-schema.ts';

/**
 * Records of a provider's unfinished uploads on this host, one per upload id. Each record is written before the request
 * that creates something in the cloud, so that any later process can clean up after a killed one.
 */
export class UploadRecords<const S extends SettingsSchema> {
  readonly #provider: string;
  readonly #directory: RecordDirectory<S> | undefined;

  /**
   * @param path directory of the records, created with the first one; undefined in a process that uploads nothing
   * @param companions file extensions of files that belong to a record, such as `.blocks`
   */
  constructor(provider: string, path: string | undefined, schema: S, companions: readonly string[] = []) {
    this.#provider = provider;
    this.#directory = path === undefined ? undefined : new RecordDirectory(path, schema, companions);
  }

  /** Reads a record; undefined if there is none. */
  async read(uploadId: string): Promise<SettingsOf<S> | undefined> {
    return await this.#directory?.read(safeName(uploadId));
  }

  async all(): Promise<SettingsOf<S>[]> {
    const directory = this.#directory;
    if (directory === undefined) return [];
    const records = await Promise.all((await directory.names()).map((name) => directory.read(name)));
    return records.filter((record) => record !== undefined);
  }

  async write(uploadId: string, record: SettingsOf<S>): Promise<void> {
    await this.required.#directory?.write(safeName(uploadId), record);
  }

  async remove(uploadId: string): Promise<void> {
    await this.#directory?.remove(safeName(uploadId));
  }

  /** Returns the path of a file that belongs to a record. */
  file(uploadId: string, ending: string): string {
    return this.required.#directory?.file(safeName(uploadId), ending) ?? '';
  }

  /** Returns these records. @throws CloudError `bad-request` in a process without records, which must not upload */
  get required(): this {
    if (this.#directory !== undefined) return this;
    throw cloudError('bad-request', `provider ${this.#provider}`, 'this program cannot upload images');
  }
}
