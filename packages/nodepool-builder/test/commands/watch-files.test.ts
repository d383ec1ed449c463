// Not a unit test: it takes seconds.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unwatchFile,
  watchFile,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { FileWatch } from '../../src/commands/watch-files.ts';

/** Milliseconds between two checks. */
const INTERVAL = 20;

interface Watched {
  readonly directory: string;
  readonly file: string;
  readonly watch: FileWatch;
  /** Number of reported changes. */
  count: number;
  /** Resolves with the next change. */
  changed(): Promise<void>;
}

function watched(t: TestContext): Watched {
  const directory = mkdtempSync(join(tmpdir(), 'watch-'));
  let tell = Promise.withResolvers<void>();
  const state: Watched = {
    directory,
    file: join(directory, 'nodepool.yaml'),
    watch: new FileWatch(() => {
      state.count += 1;
      tell.resolve();
      tell = Promise.withResolvers();
    }, INTERVAL),
    count: 0,
    changed: () => tell.promise,
  };
  t.after(() => {
    state.watch.close();
    rmSync(directory, { recursive: true });
  });
  return state;
}

const ways: readonly (readonly [
  what: string,
  prepare: (place: Watched) => void,
  change: (place: Watched) => void,
])[] = [
  ['is written', ({ file }) => writeFileSync(file, 'old'), ({ file }) => writeFileSync(file, 'new text')],
  [
    'is replaced by a renamed file, as editors do it',
    ({ file }) => writeFileSync(file, 'old'),
    ({ file }) => {
      writeFileSync(`${file}.swp`, 'new');
      renameSync(`${file}.swp`, file);
    },
  ],
  [
    'is replaced by a swapped symbolic link in its path, as Kubernetes does it',
    ({ directory, file }) => {
      for (const version of ['v1', 'v2']) {
        const data = mkdtempSync(join(directory, version));
        writeFileSync(join(data, 'nodepool.yaml'), version);
        if (version === 'v1') symlinkSync(data, join(directory, '..data'));
        else symlinkSync(data, join(directory, '..next'));
      }
      symlinkSync('..data/nodepool.yaml', file);
    },
    ({ directory }) => renameSync(join(directory, '..next'), join(directory, '..data')),
  ],
  ['appears', () => {}, ({ file }) => writeFileSync(file, 'new')],
  ['is deleted', ({ file }) => writeFileSync(file, 'old'), ({ file }) => rmSync(file)],
];

describe('a watched file', () => {
  for (const [what, prepare, change] of ways) {
    it(`a watched file is reported once when it ${what}`, async (t) => {
      const place = watched(t);
      prepare(place);
      place.watch.watch([place.file]);
      const other = watched(t); // reports only changes after its first check, and so after ours
      writeFileSync(other.file, '');
      other.watch.watch([other.file]);
      await firstLook(other);
      assert.equal(place.count, 0);
      const changed = place.changed();
      change(place);
      await changed;
      assert.equal(place.count, 1);
    });
  }

  it('a watched file counts as changed from its change until its report', async (t) => {
    const place = watched(t);
    writeFileSync(place.file, 'old');
    place.watch.watch([place.file]);
    await firstLook(place);
    await waitUntil('the report', async () => !(await place.watch.hasChanged()));
    writeFileSync(place.file, 'new text');
    assert.equal(await place.watch.hasChanged(), true, 'before the watch has noticed it');
    await waitUntil('the next report', async () => !(await place.watch.hasChanged()));
  });

  it('a watched file is not reported while it keeps changing', async (t) => {
    const place = watched(t);
    writeFileSync(place.file, 'old');
    place.watch.watch([place.file]);
    await firstLook(place);
    const before = place.count;
    let tell = Promise.withResolvers<void>();
    const listener = (): void => tell.resolve(); // called right after the watch's own listener
    watchFile(place.file, { interval: INTERVAL }, listener);
    t.after(() => unwatchFile(place.file, listener));
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const part of ['more', 'and more']) {
      tell = Promise.withResolvers();
      appendFileSync(place.file, part);
      await tell.promise;
      t.mock.timers.tick(INTERVAL * 1.5 - 1);
      assert.equal(place.count, before);
    }
    t.mock.timers.tick(1);
    assert.equal(place.count, before + 1);
  });

  it('a file is no longer watched once others replace it', async (t) => {
    const place = watched(t);
    const other = join(place.directory, 'clouds.yaml');
    for (const file of [place.file, other]) writeFileSync(file, 'old');
    place.watch.watch([place.file]);
    place.watch.watch([other]);
    await firstLook(place, other);
    const before = place.count;
    writeFileSync(place.file, 'new text');
    const changed = place.changed();
    writeFileSync(other, 'new text');
    await changed;
    assert.equal(place.count, before + 1);
  });
});

/** Changes a file until the change is reported. By then, all other files have also been checked. */
async function firstLook(place: Watched, file: string = place.file): Promise<void> {
  const changed = place.changed();
  const timer = setInterval(() => appendFileSync(file, 'x'), INTERVAL * 3);
  await changed;
  clearInterval(timer);
}
