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

/** Formats the steps: `qcow2` for a download, `qcow2>raw` for a conversion. */
function plan(wanted: readonly ImageFormat[], offered: readonly OfferedFormat[]): string | undefined {
  return planFetch(wanted, offered)
    ?.map(({ from, format }) => (from === undefined ? format : `${from}>${format}`))
    .join(' ');
}

describe('the plan for the needed formats', () => {
  const CASES: readonly (readonly [what: string, readonly ImageFormat[], Sizes, string | undefined])[] = [
    ['fetches only what is needed', ['qcow2'], { qcow2: 100, raw: 100, tar: 1 }, 'qcow2'],
    ['converts one rather than fetch two', ['qcow2', 'raw'], { qcow2: 100, raw: 100 }, 'qcow2 qcow2>raw'],
    ['fetches the smaller one', ['qcow2', 'raw'], { qcow2: 100, raw: 90 }, 'raw raw>qcow2'],
    ['fetches a far smaller format and converts it', ['raw'], { qcow2: 79, raw: 100 }, 'qcow2 qcow2>raw'],
    ['fetches the needed format if another is hardly smaller', ['raw'], { qcow2: 81, raw: 100 }, 'raw'],
    ['fetches what cannot be converted', ['qcow2', 'tar'], { qcow2: 100, tar: 300 }, 'qcow2 tar'],
    [
      'converts to what is not offered',
      ['vhd', 'vmdk'],
      { qcow2: 100, raw: 200 },
      'qcow2 qcow2>vhd qcow2>vmdk',
    ],
    ['does not exist for a tar', ['tar'], { qcow2: 100, raw: 200 }, undefined],
    ['does not exist if only a tar is offered', ['raw'], { tar: 100 }, undefined],
    ['does not exist without offers', ['raw'], {}, undefined],
    [
      'prefers qcow2 to raw if no size is known',
      ['vhd'],
      { raw: undefined, qcow2: undefined },
      'qcow2 qcow2>vhd',
    ],
    ['counts an unknown size as the largest', ['vhd'], { qcow2: undefined, raw: 5, tar: 9 }, 'raw raw>vhd'],
  ];
  for (const [what, wanted, sizes, expected] of CASES) {
    test(`the fetch plan ${what}`, () => assert.equal(plan(wanted, offers(sizes)), expected));
  }

  test('the fetch plan prefers files that are already on disk', () => {
    const kept = { format: 'raw', toFetch: 0, size: 100 } as const;
    assert.equal(plan(['qcow2', 'raw'], [{ format: 'qcow2', toFetch: 100 }, kept]), 'raw raw>qcow2');
    assert.equal(plan(['qcow2', 'raw'], [{ format: 'qcow2', toFetch: 20 }, kept]), 'qcow2 raw');
  });

  test('the fetch plan counts bytes, and a quarter of the source for a conversion', () => {
    assert.deepEqual(
      planFetch(['vhd'], offers({ qcow2: 100 }))?.map(({ cost }) => cost),
      [100, 25],
    );
  });
});
