// Not a unit test: it waits for rests.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LogChunk } from '../../src/protocol/log-part.ts';
import { type LogPart, LogSources } from '../../src/site/log-source.ts';

/** A log that grows, with a count of the reads. */
function growingLog() {
  let text = '';
  const waiting = new Set<() => void>();
  const log = {
    reads: 0,
    isComplete: false,
    add: (more: string, end = false): void => {
      text += more;
      log.isComplete = end;
      for (const wake of waiting) wake();
      waiting.clear();
    },
    read: async (offset: number, signal: AbortSignal): Promise<LogChunk> => {
      log.reads += 1;
      while (offset >= text.length && !log.isComplete) {
        signal.throwIfAborted();
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
      const data = Buffer.from(text.slice(offset, offset + 400_000));
      return { data, offset, isComplete: log.isComplete && offset + data.length === text.length };
    },
  };
  return log;
}

/** Follows a log to its end. */
async function follow(sources: LogSources, log: ReturnType<typeof growingLog>): Promise<string> {
  return await sources.use('log', log.read, async (source) => {
    let text = '';
    for (;;) {
      const { data, isComplete } = await source.read(text.length, AbortSignal.timeout(10_000));
      text += data.toString();
      if (isComplete) return text;
    }
  });
}

describe('LogSources', () => {
  it('a log source reads a log once for all its readers', async () => {
    const [sources, log] = [new LogSources(0), growingLog()];
    const readers = Array.from({ length: 10 }, () => follow(sources, log));
    for (const line of ['one\n', 'two\n']) {
      await new Promise(setImmediate);
      log.add(line);
    }
    await new Promise(setImmediate);
    log.add('end\n', true);
    assert.deepEqual(new Set(await Promise.all(readers)), new Set(['one\ntwo\nend\n']));
    assert.ok(log.reads <= 3, `${log.reads} reads`);
  });

  it('a log source lets a late reader catch up with what is no longer kept', async () => {
    const [sources, log] = [new LogSources(0), growingLog()];
    const first = follow(sources, log);
    for (let part = 0; part < 10; part += 1) {
      log.add('x'.repeat(300_000));
      await new Promise(setImmediate);
    }
    const late = follow(sources, log);
    await new Promise(setImmediate);
    log.add('end', true);
    const [one, other] = await Promise.all([first, late]);
    assert.equal(one.length, 3_000_003);
    assert.equal(other, one);
  });

  it('a log source returns whole lines, and renders them once', async () => {
    const [sources, log] = [new LogSources(0), growingLog()];
    let renders = 0;
    const render = (part: LogPart): Buffer => {
      renders += 1;
      return part.data;
    };
    const reader = (): Promise<string> =>
      sources.use('log', log.read, async (source) =>
        (await source.read(0, AbortSignal.timeout(10_000))).rendered(render).toString(),
      );
    const readers = Promise.all([reader(), reader()]);
    log.add('one\ntw');
    assert.deepEqual([await readers, renders], [['one\n', 'one\n'], 1]);
  });

  it('a log source waits for the end of a line, except of a very long one', async () => {
    const [sources, log] = [new LogSources(0), growingLog()];
    await sources.use('log', log.read, async (source) => {
      const first = source.read(0, AbortSignal.timeout(10_000));
      log.add('half');
      await new Promise(setImmediate);
      log.add(' a line\n');
      assert.equal((await first).data.toString(), 'half a line\n');
      log.add('x'.repeat(70_000));
      assert.equal((await source.read(12, AbortSignal.timeout(10_000))).data.length, 70_000);
    });
  });

  it('a log source queries the builder rarely, however fast the build writes', async () => {
    const [sources, log] = [new LogSources(200), growingLog()];
    await sources.use('log', log.read, async (source) => {
      const begun = performance.now();
      let offset = 0;
      for (let part = 0; part < 4; part += 1) {
        log.add('line\n');
        offset += (await source.read(offset, AbortSignal.timeout(10_000))).data.length;
      }
      assert.ok(performance.now() - begun > 550);
    });
  });

  it('a log source keeps nothing of a log from before it was truncated', async () => {
    const chunks: LogChunk[] = [
      { data: Buffer.from('old\n'), offset: 0, isComplete: false },
      { data: Buffer.from('tail\n'), offset: 2, isComplete: false },
      { data: Buffer.from('new\n'), offset: 0, isComplete: true },
    ];
    const read = (): Promise<LogChunk> => Promise.resolve(chunks.shift() ?? assert.fail());
    await new LogSources(0).use('log', read, async (source) => {
      const texts: string[] = [];
      for (const offset of [0, 4, 0]) {
        texts.push((await source.read(offset, AbortSignal.timeout(10_000))).data.toString());
      }
      assert.deepEqual(texts, ['old\n', 'tail\n', 'new\n']);
    });
  });

  it('a log source stops reading when it has no readers left', async () => {
    const [sources, log] = [new LogSources(0), growingLog()];
    const gone = new AbortController();
    const reading = sources.use('log', log.read, (source) => source.read(0, gone.signal));
    gone.abort(new Error('gone'));
    await assert.rejects(reading, /gone/);
    log.add('x', true);
    assert.equal(await follow(sources, log), 'x');
  });

  it('a log source passes on a builder’s error', async () => {
    const sources = new LogSources(0);
    await assert.rejects(
      sources.use(
        'log',
        () => Promise.reject(new Error('no builder has it')),
        (source) => source.read(0, AbortSignal.timeout(10_000)),
      ),
      /no builder has it/,
    );
  });
});
