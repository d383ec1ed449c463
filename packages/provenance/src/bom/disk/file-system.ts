import type { ByteSource } from '../byte-source.ts';

/** A file system that is read in this process, without mounting it. */
export interface FileSystem {
  /** Name for messages. */
  readonly type: string;
  /** Finds an inode. @throws UnreadableImage for a damaged file system */
  root(): Promise<Inode>;
}

/** A file, directory or symbolic link. */
export interface Inode {
  readonly kind: 'file' | 'directory' | 'link' | 'other';
  /** Content of a file. @throws UnreadableImage */
  content(): Promise<ByteSource>;
  /** Target of a symbolic link. */
  target(): Promise<string>;
  /** Entry of a directory; undefined if it has none of that name. */
  entry(name: string): Promise<Inode | undefined>;
}

/** As in Linux. */
const MOST_LINKS = 40;

/** Finds a file by its path, following symbolic links inside the file system. */
export async function findFile(system: FileSystem, path: string): Promise<ByteSource | undefined> {
  const names = namesOf(path);
  const root = await system.root();
  let parents = [root];
  let links = 0;
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    if (name === '..') {
      parents = parents.length > 1 ? parents.slice(0, -1) : parents;
      continue;
    }
    const parent = parents.at(-1);
    if (parent?.kind !== 'directory') return undefined;
    const found = await parent.entry(name);
    if (found === undefined) return undefined;
    if (found.kind === 'link') {
      links += 1;
      if (links > MOST_LINKS) return undefined;
      const target = await found.target();
      names.unshift(...namesOf(target));
      if (target.startsWith('/')) parents = [root];
    } else {
      parents = [...parents, found];
    }
  }
  const last = parents.at(-1);
  return last?.kind === 'file' ? await last.content() : undefined;
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}
