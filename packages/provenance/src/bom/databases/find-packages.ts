import { type ByteSource, readWhole, UnreadableImage } from '../byte-source.ts';
import type { Distribution, InstalledPackage } from '../package-url.ts';
import { NDB_NAME, readNdb, readRpmSqlite, SQLITE_NAME } from './rpm-database.ts';
import { parseApkDatabase, parseDpkgStatus } from './text-database.ts';

/** Files of an image by their paths, such as `etc/os-release`. */
export interface ImageFiles {
  /** Undefined if there is no such file. @throws UnreadableImage */
  find(path: string): Promise<ByteSource | undefined>;
}

/** Installed packages, and the databases that list them. */
export interface FoundDatabases {
  readonly packages: readonly InstalledPackage[];
  readonly databases: readonly string[];
  readonly distribution: Distribution;
}

/** Most bytes of a database in text form. Debian's has 1 KiB for each package. */
const LARGEST_TEXT = 64 * 2 ** 20;
const LARGEST_OS_RELEASE = 64 * 2 ** 10;

const BERKELEY_NAME = 'Packages';

/** Directories of the rpm database: Fedora and SUSE; RHEL; images of ostree; a partition for /var. */
const RPM_DIRECTORIES = ['usr/lib/sysimage/rpm', 'var/lib/rpm', 'usr/share/rpm', 'lib/rpm'];

/** A kind of database, the paths where it may be, and its reader. */
interface Database {
  readonly name: string;
  readonly paths: readonly string[];
  readonly read: (file: ByteSource, files: ImageFiles, path: string) => Promise<readonly InstalledPackage[]>;
}

const DATABASES: readonly Database[] = [
  {
    name: 'dpkg',
    paths: ['var/lib/dpkg/status', 'lib/dpkg/status'],
    read: async (file) => parseDpkgStatus(await readText(file)),
  },
  {
    name: 'apk',
    paths: ['lib/apk/db/installed', 'usr/lib/apk/db/installed'],
    read: async (file) => parseApkDatabase(await readText(file)),
  },
  { name: 'rpm', paths: rpmPaths(SQLITE_NAME), read: readClosedRpmSqlite },
  { name: 'rpm', paths: rpmPaths(NDB_NAME), read: readNdb },
  {
    name: 'rpm',
    paths: rpmPaths(BERKELEY_NAME),
    read: async () => {
      throw new UnreadableImage('its rpm database is in the format of Berkeley DB, which is not supported');
    },
  },
];

/** Paths of all files that {@link findPackages} looks for. */
export const DATABASE_PATHS: ReadonlySet<string> = new Set([
  ...DATABASES.flatMap(({ paths }) => paths),
  ...rpmPaths(`${SQLITE_NAME}-wal`),
  'etc/os-release',
  'usr/lib/os-release',
]);

/**
 * Installed packages of all databases in a file system; undefined if it has none.
 *
 * @throws UnreadableImage for a damaged or unsupported database
 */
export async function findPackages(files: ImageFiles): Promise<FoundDatabases | undefined> {
  const found = new Map<string, readonly InstalledPackage[]>();
  for (const { name, paths, read } of DATABASES) {
    for (const path of paths) {
      if (found.has(name)) break;
      const file = await files.find(path);
      if (file === undefined || file.size === 0) continue;
      const packages = await read(file, files, path);
      // A Debian with rpm installed has an empty database of rpm.
      if (packages.length > 0) found.set(name, packages);
    }
  }
  if (found.size === 0) return undefined;
  return {
    packages: [...found.values()].flat(),
    databases: [...found.keys()],
    distribution: await readDistribution(files),
  };
}

/** rpm moves all changes from the file `-wal` to the database when it ends. */
async function readClosedRpmSqlite(
  file: ByteSource,
  files: ImageFiles,
  path: string,
): Promise<readonly InstalledPackage[]> {
  const changes = await files.find(`${path}-wal`);
  if (changes !== undefined && changes.size > 0) {
    throw new UnreadableImage('its rpm database was not closed, so that it may be out of date');
  }
  return await readRpmSqlite(file);
}

async function readText(file: ByteSource): Promise<string> {
  return (await readWhole(file, LARGEST_TEXT, 'the list of packages')).toString();
}

async function readDistribution(files: ImageFiles): Promise<Distribution> {
  const file = (await files.find('etc/os-release')) ?? (await files.find('usr/lib/os-release'));
  if (file === undefined || file.size > LARGEST_OS_RELEASE) return {};
  const text = (await file.read(0, file.size)).toString();
  const value = (key: string): string | undefined =>
    new RegExp(`^${key}=["']?([\\w.+-]+)["']?\\s*$`, 'm').exec(text)?.[1];
  const [id, versionId] = [value('ID'), value('VERSION_ID')];
  return { ...(id !== undefined && { id }), ...(versionId !== undefined && { versionId }) };
}

function rpmPaths(name: string): string[] {
  return RPM_DIRECTORIES.map((directory) => `${directory}/${name}`);
}
