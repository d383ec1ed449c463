import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { utf8Names } from './directory-entries.ts';
import { UNFINISHED, writeDurably } from './durable.ts';
import { JsonReader } from './json-reader.ts';
import { makeStateDirectory } from './modes.ts';
import type { SettingsOf, SettingsSchema } from './settings-schema.ts';
import { unlessMissing } from './system-error.ts';

const EXTENSION = '.json';

/** A record on disk that its schema does not accept. */
export class DamagedRecordError extends Error {
  override readonly name = 'DamagedRecordError';
  /** Reason, such as `files[0].size is not a number`. */
  readonly reason: string;

  constructor(path: string, reason: string) {
    super(`"${path}" is damaged: ${reason}`);
    this.reason = reason;
  }
}

/** Reads and writes the files of records with one schema. */
export class RecordType<const S extends SettingsSchema> {
  readonly #reader: JsonReader<S>;

  constructor(schema: S) {
    this.#reader = new JsonReader(schema);
  }

  text(record: SettingsOf<S>): string {
    return `${JSON.stringify(record, null, 2)}\n`;
  }

  /** Writes a record atomically. It survives a power failure once this resolves. */
  async write(path: string, record: SettingsOf<S>): Promise<void> {
    await writeDurably(path, this.text(record));
  }

  /** Reads a record; undefined if the file does not exist. @throws DamagedRecordError */
  async read(path: string): Promise<SettingsOf<S> | undefined> {
    // A synchronous read of a small file takes a tenth of the time, which matters at a start with thousands of images.
    const read = async (): Promise<string> => readFileSync(path, 'utf8');
    const text = await unlessMissing(read());
    return text === undefined ? undefined : this.parse(text, path);
  }

  parse(text: string, path: string): SettingsOf<S> {
    return this.#reader.parse(text, (reason) => new DamagedRecordError(path, reason));
  }
}

/** A directory of records of one type, `<name>.json` each. */
export class RecordDirectory<const S extends SettingsSchema> {
  readonly path: string;
  readonly #type: RecordType<S>;
  readonly #companions: readonly string[];

  /**
   * @param path directory, which is created with the first record
   * @param companions suffixes of files that belong to a record, such as `.key`
   */
  constructor(path: string, schema: S, companions: readonly string[] = []) {
    this.path = path;
    this.#type = new RecordType(schema);
    this.#companions = companions;
  }

  /** Path of a record, or of its companion file. */
  file(name: string, ending: string = EXTENSION): string {
    return join(this.path, name + ending);
  }

  /** Names with a file, including records and companions that a crash left half-written. */
  async names(): Promise<string[]> {
    const endings = this.#endings();
    const files = await utf8Names(this.path);
    const names = files.flatMap((file) => {
      const ending = endings.find((candidate) => file.endsWith(candidate));
      return ending === undefined ? [] : [file.slice(0, -ending.length)];
    });
    return [...new Set(names)];
  }

  /** Reads a record; undefined if it does not exist. @throws DamagedRecordError */
  async read(name: string): Promise<SettingsOf<S> | undefined> {
    return await this.#type.read(this.file(name));
  }

  async write(name: string, record: SettingsOf<S>): Promise<void> {
    await makeStateDirectory(this.path);
    await this.#type.write(this.file(name), record);
  }

  /** Removes the files of a record, the record itself last, because {@link names} finds them through it. */
  async remove(name: string): Promise<void> {
    for (const ending of this.#endings()) await rm(this.file(name, ending), { force: true });
  }

  #endings(): string[] {
    return [...this.#companions, EXTENSION].flatMap((ending) => [ending + UNFINISHED, ending]);
  }
}
