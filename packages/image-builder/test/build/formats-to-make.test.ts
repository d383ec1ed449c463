import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../../test/fixtures/with-code.ts';
import { formatsToMake } from '../../src/build/formats-to-make.ts';
import type { ImageFormat } from '../../src/index.ts';

interface Row {
  readonly wanted: readonly ImageFormat[];
  readonly native: readonly ImageFormat[] | undefined;
  readonly made: readonly ImageFormat[];
}

const ROWS: readonly Row[] = [
  { wanted: [], native: undefined, made: ['qcow2'] },
  { wanted: [], native: ['raw', 'qcow2'], made: ['raw'] },
  { wanted: ['vhd', 'tar'], native: undefined, made: ['vhd', 'tar'] },
  { wanted: ['raw', 'qcow2'], native: ['qcow2', 'raw', 'tar'], made: ['raw', 'qcow2'] },
  { wanted: ['raw', 'raw'], native: ['raw'], made: ['raw'] },
  // Other formats are converted later, from one that the builder creates anyway or from its best format.
  { wanted: ['qcow2', 'vhd'], native: ['raw', 'qcow2'], made: ['qcow2'] },
  { wanted: ['qcow2', 'vhd'], native: ['raw'], made: ['raw'] },
  { wanted: ['tar', 'vhd'], native: ['tar', 'qcow2'], made: ['tar', 'qcow2'] },
];

for (const { wanted, native, made } of ROWS) {
  const builder = native === undefined ? 'a builder of all formats' : `a builder of ${native.join(' and ')}`;
  test(`${builder} makes ${made.join(' and ')} if ${wanted.join(' and ') || 'no format'} is requested`, () => {
    assert.deepEqual(formatsToMake({ name: 'debian', formats: wanted }, native), made);
  });
}

const REFUSED: readonly Pick<Row, 'wanted' | 'native'>[] = [
  { wanted: ['qcow2', 'tar'], native: ['qcow2'] },
  { wanted: ['qcow2'], native: ['tar'] },
];

for (const { wanted, native } of REFUSED) {
  test(`a builder of ${native?.join(' and ')} rejects ${wanted.join(' and ')}`, () => {
    assert.throws(
      () => formatsToMake({ name: 'debian', formats: wanted }, native),
      withCode('format-unavailable', /disk image "debian" is requested as .*choose another/),
    );
  });
}

test('a builder rejects an unknown format', () => {
  const formats = ['qcow3'] as unknown as readonly ImageFormat[];
  assert.throws(() => formatsToMake({ name: 'debian', formats }, undefined), withCode('format-unknown'));
});
