// Not a unit test: mounts small file systems.
import assert from 'node:assert/strict';
import { link, mkdir, rm, statfs, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { mountTmpfs, temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { DiskSpaceGuard, type Reservation, type SpaceRequest, spaceTaken } from '../src/disk-space.ts';
import { ImageError, type Progress } from '../src/index.ts';

const MEBIBYTE = 2 ** 20;

function tooLittle(missing: number): Error {
  return new ImageError('disk-full', `${missing} bytes are missing`);
}

/** A file system of 16 MiB, and requests for space on it. */
class Site {
  readonly guard: DiskSpaceGuard;
  readonly directory: string;

  private constructor(directory: string, guard: DiskSpaceGuard) {
    this.directory = directory;
    this.guard = guard;
  }

  static async open(t: TestContext): Promise<Site> {
    return new Site(await mountTmpfs(t, 'size=16m'), new DiskSpaceGuard());
  }

  request(name: string, mebibytes: number): SpaceRequest {
    return { name, path: join(this.directory, name), bytes: mebibytes * MEBIBYTE, tooLittle };
  }

  async write(name: string, mebibytes: number): Promise<void> {
    await writeFile(join(this.directory, name), Buffer.alloc(mebibytes * MEBIBYTE, 'x'));
  }
}

/** A waiting request, with the names that it has reported so far. */
class Waiter {
  readonly told: (string | undefined)[] = [];
  readonly #waits = Promise.withResolvers<void>();
  readonly reservation: Promise<Reservation>;
  isGranted = false;

  constructor(site: Site, request: SpaceRequest, signal?: AbortSignal) {
    const onProgress = ({ waiting }: Progress): void => {
      this.told.push(waiting);
      this.#waits.resolve();
    };
    this.reservation = site.guard.reserve(request, { onProgress, ...(signal && { signal }) });
    this.reservation.then(
      () => (this.isGranted = true),
      () => {},
    );
  }

  get waits(): Promise<void> {
    return this.#waits.promise;
  }
}

test('the second of two operations that do not fit on the disk together waits for the first', async (t) => {
  const site = await Site.open(t);
  const first = await site.guard.reserve(site.request('first', 10));
  const second = new Waiter(site, site.request('second', 10));
  await second.waits;
  assert.deepEqual(second.told, ['disk space, held by first']);
  assert.equal(second.isGranted, false);
  first.release();
  await second.reservation;
  assert.deepEqual(second.told, ['disk space, held by first', undefined], 'it no longer waits');
});

test('an operation that waits for disk space fails when the others have filled the disk', async (t) => {
  const site = await Site.open(t);
  const first = await site.guard.reserve(site.request('first', 10));
  const second = new Waiter(site, site.request('second', 10));
  await second.waits;
  await site.write('first', 10);
  first.release();
  await assert.rejects(second.reservation, withCode('disk-full', /bytes are missing/));
});

test('bytes that are written no longer count as reserved disk space', async (t) => {
  const site = await Site.open(t);
  await site.guard.reserve(site.request('first', 8));
  await site.write('first', 8);
  const second = await site.guard.reserve(site.request('second', 7));
  assert.equal((await second.measure()).due, 7 * MEBIBYTE);
});

test('an operation that can never fit on the disk fails at once, even if others run', async (t) => {
  const site = await Site.open(t);
  await assert.rejects(site.guard.reserve(site.request('alone', 17)), withCode('disk-full', /1048576 bytes/));
  await site.guard.reserve(site.request('first', 10));
  await assert.rejects(
    site.guard.reserve(site.request('second', 17)),
    withCode('disk-full', /1048576 bytes/),
  );
});

test('an operation whose need for disk space is unknown never waits', async (t) => {
  const site = await Site.open(t);
  await site.guard.reserve(site.request('first', 16));
  await site.guard.reserve(site.request('second', 0));
});

test('a waiting operation can be cancelled, and the next operation takes its turn', async (t) => {
  const site = await Site.open(t);
  const first = await site.guard.reserve(site.request('first', 8));
  const controller = new AbortController();
  const large = new Waiter(site, site.request('large', 16), controller.signal);
  await large.waits;
  const small = new Waiter(site, site.request('small', 4));
  await small.waits;
  controller.abort(new Error('cancelled'));
  await assert.rejects(large.reservation, /cancelled/);
  await small.reservation;
  first.release();
});

test('a small operation does not overtake a waiting operation, but names it', async (t) => {
  const site = await Site.open(t);
  const first = await site.guard.reserve(site.request('first', 8));
  const large = new Waiter(site, site.request('large', 16));
  await large.waits;
  const small = new Waiter(site, site.request('small', 4));
  await small.waits;
  assert.deepEqual(small.told, ['disk space, held by first, large']);
  first.release();
  (await large.reservation).release();
  await small.reservation;
});

test('an operation stops waiting if disk space becomes free otherwise', async (t) => {
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (run: () => void, delay: number) =>
    setTimeout(run, delay === 5_000 ? 10 : delay),
  );
  const site = await Site.open(t);
  await site.write('old', 8);
  await site.guard.reserve(site.request('first', 6));
  const second = new Waiter(site, site.request('second', 6));
  await second.waits;
  await rm(join(site.directory, 'old'));
  await second.reservation;
});

test('operations that need more disk space while they run do not wait for each other', async (t) => {
  const site = await Site.open(t);
  const requests = ['one', 'other'].map((name) => site.request(name, 6));
  const held = await Promise.all(requests.map((request) => site.guard.reserve(request)));
  const extended = held.map(async (reservation, index) => {
    const name = `more-${index}`;
    const larger = await site.guard.extend(reservation, site.request(name, 12));
    larger.release();
  });
  await Promise.all(extended);
});

test('an extended reservation of disk space counts its former files', async (t) => {
  const site = await Site.open(t);
  const held = await site.guard.reserve(site.request('one', 4));
  await site.write('one', 3);
  assert.equal(await site.guard.extend(held, site.request('within', 1)), held, 'it is large enough');
  const extended = await site.guard.extend(held, site.request('two', 5));
  await site.write('two', 2);
  const { written, due } = await extended.measure();
  assert.deepEqual([written, due], [5 * MEBIBYTE, 3 * MEBIBYTE]);
  assert.equal(extended.peak, written);
});

test('an extended reservation of disk space keeps the peak that was measured before', async (t) => {
  const site = await Site.open(t);
  const held = await site.guard.reserve(site.request('one', 6));
  await site.write('one', 6);
  await held.measure();
  await site.write('one', 1);
  const extended = await site.guard.extend(held, site.request('two', 8));
  assert.notEqual(extended, held);
  assert.equal(extended.peak, 6 * MEBIBYTE);
});

test('a directory’s disk space is its files’, without holes, each once', async (t) => {
  const directory = await mountTmpfs(t, 'size=16m');
  const inner = join(directory, 'all', 'inner');
  await mkdir(inner, { recursive: true });
  await writeFile(join(inner, 'file'), Buffer.alloc(2 * MEBIBYTE, 'x'));
  await link(join(inner, 'file'), join(directory, 'all', 'link'));
  await writeFile(join(inner, 'sparse'), 'x');
  await truncate(join(inner, 'sparse'), 64 * MEBIBYTE);
  const taken = await spaceTaken([join(directory, 'all'), join(directory, 'missing')]);
  assert.ok(taken >= 2 * MEBIBYTE && taken < 3 * MEBIBYTE, `${taken} bytes`);
  const { bfree, blocks, bsize } = await statfs(directory);
  assert.equal(taken, (blocks - bfree) * bsize);
});

test('files whose names are not UTF-8 count towards a directory’s disk space', async (t) => {
  const directory = await temporaryDirectory(t);
  const before = await spaceTaken([directory]);
  await writeFile(
    Buffer.concat([Buffer.from(`${directory}/caf`), Buffer.from([0xe9])]),
    Buffer.alloc(65_536, 'x'),
  );
  assert.ok((await spaceTaken([directory])) >= before + 65_536);
});
