import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import { type OfferedFormat, planFetch } from '../../src/zuul-artifact/fetch-plan.ts';

type Sizes = Partial<Record<ImageFormat, number | undefined>>;

function offers(sizes: Sizes): readonly OfferedFormat[] {
  return (Object.entries(sizes) as [ImageFormat, number | undefined][]).map(([format, toFetch]) => ({
    format,
    ...(toFetch !== undefined && { toFetch }),
  }));
}

/** `qcow2`, or `qcow2>raw` for a conversion; of each step. */
function plan(wanted: readonly ImageFormat[], offered: readonly OfferedFormat[]): string | undefined {
  return planFetch(wanted, offered)
    ?.map(({ from, format }) => (from === undefined ? format : `${from}>${format}`))
    .join(' ');
}

describe('the way to the formats that are wanted', () => {
  const CASES: readonly (readonly [what: string, readonly ImageFormat[], Sizes, string | undefined])[] = [
    ['fetches what is wanted, and nothing else', ['qcow2'], { qcow2: 100, raw: 100, tar: 1 }, 'qcow2'],
    ['converts rather than fetch two', ['qcow2', 'raw'], { qcow2: 100, raw: 100 }, 'qcow2 qcow2>raw'],
    ['begins with the smaller one', ['qcow2', 'raw'], { qcow2: 100, raw: 90 }, 'raw raw>qcow2'],
    [
      'fetches one that is far smaller than what is wanted',
      ['raw'],
      { qcow2: 79, raw: 100 },
      'qcow2 qcow2>raw',
    ],
    ['fetches what is wanted if another is hardly smaller', ['raw'], { qcow2: 81, raw: 100 }, 'raw'],
    ['fetches what cannot be made', ['qcow2', 'tar'], { qcow2: 100, tar: 300 }, 'qcow2 tar'],
    ['makes what is not there', ['vhd', 'vmdk'], { qcow2: 100, raw: 200 }, 'qcow2 qcow2>vhd qcow2>vmdk'],
    ['cannot make a tar', ['tar'], { qcow2: 100, raw: 200 }, undefined],
    ['cannot make anything of a tar', ['raw'], { tar: 100 }, undefined],
    ['cannot make anything of nothing', ['raw'], {}, undefined],
    [
      'takes qcow2 before raw if no size is known',
      ['vhd'],
      { raw: undefined, qcow2: undefined },
      'qcow2 qcow2>vhd',
    ],
    ['takes an unknown size for a large one', ['vhd'], { qcow2: undefined, raw: 5, tar: 9 }, 'raw raw>vhd'],
  ];
  for (const [what, wanted, sizes, expected] of CASES) {
    test(what, () => assert.equal(plan(wanted, offers(sizes)), expected));
  }

  test('takes first what need not be fetched', () => {
    const kept = { format: 'raw', toFetch: 0, size: 100 } as const;
    assert.equal(plan(['qcow2', 'raw'], [{ format: 'qcow2', toFetch: 100 }, kept]), 'raw raw>qcow2');
    assert.equal(plan(['qcow2', 'raw'], [{ format: 'qcow2', toFetch: 20 }, kept]), 'qcow2 raw');
  });

  test('counts bytes, and a quarter of those of the source for a conversion', () => {
    assert.deepEqual(
      planFetch(['vhd'], offers({ qcow2: 100 }))?.map(({ cost }) => cost),
      [100, 25],
    );
  });
});
