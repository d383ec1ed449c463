import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { bufferSource } from '../../src/bom/byte-source.ts';
import { readNdb, readRpmSqlite } from '../../src/bom/databases/rpm-database.ts';
import { linesOf, makeExt, packagesOfFile, run, withDirectory, writeTree } from './test-images.ts';

interface Facts {
  readonly name: string;
  readonly version: string;
  readonly release: string;
  readonly epoch?: number;
  readonly arch?: string;
  readonly license?: string;
  /** Bytes of other data, such as names of files. */
  readonly padding?: number;
}

const STRING = 6;
const INT32 = 4;

/** A header as rpm stores it, with its entries in the order of tags. */
function headerOf({ name, version, release, epoch, arch, license, padding = 0 }: Facts): Buffer {
  const entries: (readonly [tag: number, type: number, data: Buffer])[] = [
    [1000, STRING, Buffer.from(`${name}\0`)],
    [1001, STRING, Buffer.from(`${version}\0`)],
    [1002, STRING, Buffer.from(`${release}\0`)],
    ...(epoch === undefined ? [] : [[1003, INT32, uint32(epoch)] as const]),
    ...(license === undefined ? [] : [[1014, STRING, Buffer.from(`${license}\0`)] as const]),
    ...(arch === undefined ? [] : [[1022, STRING, Buffer.from(`${arch}\0`)] as const]),
    [1117, STRING, Buffer.concat([Buffer.alloc(padding, 'x'), Buffer.alloc(1)])],
  ];
  const index: Buffer[] = [];
  let data = Buffer.alloc(0);
  for (const [tag, type, bytes] of entries) {
    if (type === INT32) data = Buffer.concat([data, Buffer.alloc(-data.length & 3)]);
    index.push(...[tag, type, data.length, 1].map(uint32));
    data = Buffer.concat([data, bytes]);
  }
  return Buffer.concat([uint32(entries.length), uint32(data.length), ...index, data]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const PACKAGES: readonly Facts[] = [
  { name: 'bash', version: '5.1.8', release: '9.el9', arch: 'x86_64', license: 'GPLv3+', padding: 3000 },
  { name: 'openssl', version: '3.0.7', release: '27.el9', epoch: 1, arch: 'x86_64', padding: 100_000 },
  { name: 'gpg-pubkey', version: '350d275d', release: '6279464b' },
  { name: 'kernel', version: '5.14.0', release: '1.el9', arch: 'x86_64', epoch: 0, padding: 2_000_000 },
  { name: 'kernel', version: '5.14.0', release: '2.el9', arch: 'x86_64' },
];

const LINES = ['bash 5.1.8-9.el9', 'openssl 1:3.0.7-27.el9', 'kernel 5.14.0-1.el9', 'kernel 5.14.0-2.el9'];

/** A database with the tables that rpm creates. */
function makeDatabase(path: string, packages: readonly Facts[], pageSize = 4096): void {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA page_size = ${pageSize}`);
  database.exec('CREATE TABLE Basenames (key TEXT NOT NULL, hnum INTEGER, idx INTEGER)');
  database.exec('CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)');
  const statement = database.prepare('INSERT INTO Packages (blob) VALUES (?)');
  database.exec('BEGIN');
  for (const one of packages) statement.run(headerOf(one));
  database.exec('COMMIT');
  database.close();
}

for (const pageSize of [512, 4096, 65_536]) {
  test(`packages of an rpm database in SQLite with pages of ${pageSize} bytes`, async () => {
    await withDirectory(async (directory) => {
      const path = join(directory, 'rpmdb.sqlite');
      const many = Array.from({ length: 700 }, (_, index) => ({
        name: `package-${index}`,
        version: '1',
        release: '2',
        padding: index * 7,
      }));
      makeDatabase(path, [...PACKAGES, ...many], pageSize);
      const found = await readRpmSqlite(bufferSource(await readFile(path)));
      const lines = found.map(({ name, version }) => `${name} ${version}`);
      assert.deepEqual(lines.slice(0, 4), LINES);
      assert.deepEqual(
        lines.slice(4),
        many.map(({ name }) => `${name} 1-2`),
      );
      assert.deepEqual(found[0], {
        name: 'bash',
        version: '5.1.8-9.el9',
        architecture: 'x86_64',
        type: 'rpm',
        license: 'GPLv3+',
      });
    });
  });
}

/** A database as SUSE's rpm writes it: slots in the first page, then the blobs. */
function makeNdb(packages: readonly Facts[]): Buffer {
  const slots = Buffer.alloc(4096);
  slots.write('RpmP');
  slots.writeUInt32LE(1, 12);
  for (let at = 32; at < slots.length; at += 16) slots.write('Slot', at);
  let file = slots;
  for (const [index, one] of packages.entries()) {
    const header = headerOf(one);
    const at = 32 + index * 16;
    slots.writeUInt32LE(index + 1, at + 4);
    slots.writeUInt32LE(file.length / 16, at + 8);
    const head = Buffer.alloc(16);
    head.write('BlbS');
    head.writeUInt32LE(index + 1, 4);
    head.writeUInt32LE(header.length, 12);
    file = Buffer.concat([file, head, header, Buffer.alloc(-header.length & 15)]);
  }
  slots.copy(file);
  return file;
}

test("packages of an rpm database in SUSE's format", async () => {
  const found = await readNdb(bufferSource(makeNdb(PACKAGES)));
  assert.deepEqual(
    found.map(({ name, version }) => `${name} ${version}`),
    LINES,
  );
});

test('packages of an image with an rpm database', async () => {
  await withDirectory(async (directory) => {
    const tree = await writeTree(join(directory, 'tree'), {
      'etc/os-release': 'ID="rocky"\nVERSION_ID="9.4"\n',
      'var/lib/rpm/rpmdb.sqlite': '',
    });
    makeDatabase(join(tree, 'var/lib/rpm/rpmdb.sqlite'), PACKAGES);
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    const found = await packagesOfFile(path, 'raw');
    assert.deepEqual(
      linesOf(found),
      LINES.map((line) => `${line} x86_64`),
    );
    assert.ok('packages' in found);
    assert.equal(found.source, 'rpm database in 1-a.raw');
    assert.equal(
      found.packages[1]?.purl,
      'pkg:rpm/rocky/openssl@3.0.7-27.el9?arch=x86_64&distro=rocky-9.4&epoch=1',
    );

    await writeFile(join(tree, 'var/lib/rpm/rpmdb.sqlite-wal'), 'changes');
    await makeExt(path, tree);
    assert.match(String(linesOf(await packagesOfFile(path, 'raw'))), /not closed/);
  });
});

const SPECIFICATION = `Name: demo-tool
Version: 1.2
Release: 3
Epoch: 4
Summary: a tool
License: MIT
BuildArch: noarch
%description
%{summary}
%files
`;

test('packages that rpm itself installed', async () => {
  await withDirectory(async (directory) => {
    await writeTree(directory, { 'demo.spec': SPECIFICATION });
    const top = join(directory, 'build');
    await run('rpmbuild', ['-bb', '--quiet', '--define', `_topdir ${top}`, join(directory, 'demo.spec')]);
    const tree = join(directory, 'tree');
    const built = join(top, 'RPMS/noarch/demo-tool-1.2-3.noarch.rpm');
    await run('rpm', ['--root', tree, '--dbpath', '/var/lib/rpm', '-i', '--justdb', '--nodeps', built]);
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    const found = await packagesOfFile(path, 'raw');
    assert.deepEqual(found, {
      packages: [
        {
          name: 'demo-tool',
          version: '4:1.2-3',
          architecture: 'noarch',
          type: 'rpm',
          license: 'MIT',
          purl: 'pkg:rpm/redhat/demo-tool@1.2-3?arch=noarch&epoch=4',
        },
      ],
      source: 'rpm database in 1-a.raw',
    });
  });
});

test('an rpm database of Berkeley DB gives a reason', async () => {
  await withDirectory(async (directory) => {
    const tree = await writeTree(join(directory, 'tree'), { 'var/lib/rpm/Packages': 'x' });
    const path = join(directory, '1-a.raw');
    await makeExt(path, tree);
    assert.match(String(linesOf(await packagesOfFile(path, 'raw'))), /Berkeley DB/);
  });
});

test('any damaged byte of an rpm database gives packages or an error, within bounds', async () => {
  await withDirectory(async (directory) => {
    const path = join(directory, 'rpmdb.sqlite');
    makeDatabase(path, PACKAGES.slice(0, 2), 512);
    const cases = [
      [await readFile(path), readRpmSqlite],
      [makeNdb(PACKAGES.slice(0, 2)), readNdb],
    ] as const;
    for (const [database, read] of cases) {
      for (let index = 0; index < 1000; index += 1) {
        const changed = Buffer.from(database);
        const position = (index * 53) % Math.min(database.length, 16_384);
        changed[position] = (changed[position] ?? 0) ^ (1 + (index % 255));
        await read(bufferSource(changed)).catch((error: unknown) => {
          const isExpected = error instanceof RangeError || (error as Error).name === 'UnreadableImage';
          assert.ok(isExpected, String(error));
        });
      }
    }
  });
});
