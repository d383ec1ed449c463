import { deepEqual, equal } from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { undoAfter } from '../../../../test/fixtures/undo-after.ts';
import { FormerImages } from '../../src/daemon/former-images.ts';

/** Lines of `status`: function, jobs, running jobs, connections that offer it. */
type Status = readonly (readonly [name: string, total: number, running: number, offers: number])[];

interface Site {
  readonly former: FormerImages;
  /** Returns the functions to offer after each scan. */
  readonly waiting: () => Promise<string[][]>;
  readonly logger: RecordingLogger;
}

/** Job servers that reply to successive scans with these lines. */
async function site(t: TestContext, ...servers: readonly (readonly Status[])[]): Promise<Site> {
  const seen: string[][] = [];
  const lookedAll = Promise.withResolvers<void>();
  const addresses = await Promise.all(
    servers.map(async (looks, index) => {
      let look = 0;
      const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => {
          // The result of a scan is known when the next one begins.
          if (index === 0 && look > 0) seen.push([...former.waiting]);
          const status = looks[look];
          look += 1;
          if (status === undefined) {
            lookedAll.resolve();
            socket.destroy();
          } else {
            socket.write(`${status.map((line) => `${line.join('\t')}\n`).join('')}.\n`);
          }
        });
      });
      undoAfter(t, () => void server.close());
      await once(server.listen(0, '127.0.0.1'), 'listening');
      return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    }),
  );
  const logger = new RecordingLogger();
  const former = new FormerImages({ servers: addresses, onChange: () => {}, logger, interval: 20 });
  undoAfter(t, () => former.close());
  former.add('1');
  const waiting = async (): Promise<string[][]> => {
    await lookedAll.promise;
    return seen;
  };
  return { former, waiting, logger };
}

const UPLOAD = 'image-upload:1';
const DELETE = 'image-delete:1';

describe('a job for an image that is no longer here', () => {
  it('a job for an image that is gone gets a result once two scans found no builder for it', async (t) => {
    const { waiting, logger } = await site(t, [
      [[UPLOAD, 1, 0, 0]],
      [
        [UPLOAD, 1, 0, 0],
        [DELETE, 1, 0, 0],
      ],
      [
        [UPLOAD, 2, 1, 1],
        [DELETE, 1, 0, 0],
      ],
      [
        [UPLOAD, 0, 0, 1],
        [DELETE, 1, 1, 1],
      ],
      [],
    ]);
    deepEqual(await waiting(), [[], [UPLOAD], [UPLOAD, DELETE], [DELETE], []]);
    equal(logger.lines.length, 2);
  });

  it('a job for an image that is gone is left to a builder that offers its function, even a busy one', async (t) => {
    const { waiting } = await site(t, [
      [[UPLOAD, 5, 1, 1]],
      [[UPLOAD, 5, 1, 1]],
      [[UPLOAD, 5, 0, 0]],
      [[UPLOAD, 5, 1, 1]],
    ]);
    deepEqual(await waiting(), [[], [], [], []]);
  });

  it('a job for an image that is gone is left to a builder at another job server', async (t) => {
    const queued: Status = [[UPLOAD, 1, 0, 0]];
    const offered: Status = [[UPLOAD, 0, 0, 1]];
    const { waiting } = await site(t, [queued, queued, queued], [offered, offered, offered]);
    deepEqual(await waiting(), [[], [], []]);
  });

  it('a job for an image that is gone is left to a builder that connects later', async (t) => {
    const { waiting } = await site(t, [[[UPLOAD, 9, 0, 0]], [[UPLOAD, 9, 0, 0]], [[UPLOAD, 9, 2, 2]]]);
    deepEqual(await waiting(), [[], [UPLOAD], []]);
  });

  it('a job is not taken over if its image is present or was never offered by this process', async (t) => {
    const others: Status = [
      ['image-upload:2', 1, 0, 0],
      ['image-upload:3', 1, 0, 0],
      ['image-build:1', 1, 0, 0],
    ];
    const { waiting } = await site(t, [others, others, others]);
    deepEqual(await waiting(), [[], [], []]);
  });
});

it('an image whose file is restored is offered normally', async (t) => {
  const { former, waiting } = await site(t, [[[UPLOAD, 1, 0, 0]], [[UPLOAD, 1, 0, 0]]]);
  deepEqual(await waiting(), [[], [UPLOAD]]);
  former.delete('1');
  deepEqual([...former.waiting], []);
});
