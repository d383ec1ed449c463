import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import {
  type BuildRecord,
  type HistoryUpdate,
  ProcessedBuilds,
  withImported,
  withSkipped,
} from '../../src/builds/processed-builds.ts';
import { zuulFailure } from '../api/zuul-failure.ts';

function entry(id: number, more: Partial<BuildRecord> = {}): BuildRecord {
  const content = [{ format: 'qcow2', url: `https://images/${id}`, sha256: 'a'.repeat(64) } as const];
  return { uuid: `build-${id}`, id, endTime: id * 1000, pipeline: 'periodic', content, ...more };
}

function chosen(id: number): HistoryUpdate {
  return { same: [entry(id)], passedOver: [] };
}

describe('the processed builds of an image', () => {
  test('the record of processed builds is empty at first, and unchanged after a restart', async (t) => {
    const directory = await temporaryDirectory(t);
    const processed = await ProcessedBuilds.open(directory, 'noble');
    assert.deepEqual(processed.history, { newest: undefined, builds: new Map() });
    const noHash = entry(2, { content: [{ format: 'raw', url: 's3://b/k' }] });
    await processed.write(withImported(processed.history, { same: [entry(1)], passedOver: [noHash] }));
    const again = await ProcessedBuilds.open(directory, 'noble');
    assert.deepEqual(again.history, processed.history);
    assert.deepEqual(again.history.newest, { endTime: 1000, id: 1 });
    assert.deepEqual([...again.history.builds.values()], [entry(1), noHash]);
  });

  test('the processed builds have a newest build that never becomes older', async (t) => {
    const processed = await ProcessedBuilds.open(await temporaryDirectory(t), 'noble');
    await processed.write(withImported(processed.history, chosen(5)));
    await processed.write(withImported(processed.history, chosen(3)));
    assert.deepEqual(processed.history.newest, { endTime: 5000, id: 5 });
  });

  test('the processed builds have no newest build after one was skipped', async (t) => {
    const processed = await ProcessedBuilds.open(await temporaryDirectory(t), 'noble');
    await processed.write(withSkipped(processed.history, chosen(9)));
    assert.equal(processed.history.newest, undefined);
    assert.ok(processed.history.builds.has('build-9'));
  });

  test('the processed builds are limited to the newest 500', async (t) => {
    const directory = await temporaryDirectory(t);
    const processed = await ProcessedBuilds.open(directory, 'noble');
    const many = Array.from({ length: 599 }, (_, index) => entry(index + 1));
    await processed.write(
      withImported(processed.history, { same: [entry(600)], passedOver: many.toReversed() }),
    );
    const { builds } = (await ProcessedBuilds.open(directory, 'noble')).history;
    assert.equal(builds.size, 500);
    assert.ok(builds.has('build-600') && builds.has('build-101') && !builds.has('build-100'));
  });

  test('the processed builds do not change in an earlier history', async (t) => {
    const processed = await ProcessedBuilds.open(await temporaryDirectory(t), 'noble');
    const before = processed.history;
    await processed.write(withImported(processed.history, chosen(1)));
    assert.equal(before.builds.size, 0);
  });

  const damages: Readonly<Record<string, string>> = {
    'half a file': '{"version":1,"builds":[',
    'another version': '{"version":2,"builds":[]}',
    'no list of builds': '{"version":1}',
    'no uuid': '{"version":1,"builds":[{"id":1,"endTime":1,"pipeline":"p","content":[]}]}',
    'no time': '{"version":1,"newest":{"id":1},"builds":[]}',
    'no format':
      '{"version":1,"builds":[{"uuid":"u","id":1,"endTime":1,"pipeline":"p","content":[{"url":"x"}]}]}',
  };
  for (const [what, content] of Object.entries(damages)) {
    test(`the processed builds cannot be read from a file with ${what}`, async (t) => {
      const directory = await temporaryDirectory(t);
      const path = join(directory, 'noble.json');
      await writeFile(path, content);
      await assert.rejects(
        ProcessedBuilds.open(directory, 'noble'),
        zuulFailure('record-damaged', path, 'remove it'),
      );
      assert.equal(await readFile(path, 'utf8'), content);
    });
  }

  test('the processed builds are unchanged if they cannot be written', async (t) => {
    const parent = await temporaryDirectory(t);
    const processed = await ProcessedBuilds.open(join(parent, 'file'), 'noble');
    await writeFile(join(parent, 'file'), '');
    const history = withImported(processed.history, chosen(1));
    await assert.rejects(processed.write(history), withCode('directory-not-usable', /noble\.json/));
    assert.equal(processed.history.builds.size, 0);
  });

  test('the processed builds cannot be read from an unusable directory', async (t) => {
    const directory = join(await temporaryDirectory(t), 'file');
    await writeFile(directory, '');
    await assert.rejects(
      ProcessedBuilds.open(directory, 'noble'),
      withCode('directory-not-usable', /noble\.json/),
    );
  });
});

test('the processed builds lose no recorded build after SIGKILL', async (t) => {
  const directory = await temporaryDirectory(t);
  for (let round = 0; round < 5; round += 1) {
    const child = spawn(
      process.execPath,
      [...process.execArgv, join(import.meta.dirname, 'history-victim.ts'), directory],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let last = 0;
    for await (const line of createInterface(child.stdout)) {
      last = Number(line);
      // the next one is being written
      if (last % 7 === round % 7) break;
    }
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { newest, builds } = (await ProcessedBuilds.open(directory, 'noble')).history;
    assert.ok(newest !== undefined && newest.id >= last, `${newest?.id} of ${last}`);
    for (let id = 1; id <= last; id += 1) assert.ok(builds.has(`build-${id}`), `build ${id}`);
  }
});
