import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import {
  buildFactsOf,
  buildStatement,
  conversionStatement,
  SLSA_PROVENANCE,
} from '../src/build-statement.ts';
import { provenanceFailure } from './provenance-failure.ts';
import { finishBuild, MATERIALS, NOW, sha256 } from './site-fixture.ts';

const BUILDER = { builderId: 'https://ci.example.org/builder-1', version: '1.2.3', host: 'builder-1' };
const PARAMETERS = { 'configuration-digest': 'c'.repeat(64), builder: 'dib' };

describe('the statement of a build', () => {
  test('a build’s statement contains SLSA provenance', async (t) => {
    const build = await finishBuild(temporaryDirectory(t));
    assert.deepEqual(buildStatement(build, BUILDER, PARAMETERS, { sha256: 'd'.repeat(64) }), {
      subjects: [
        { name: 'debian-1.raw', sha256: sha256('raw of debian-1') },
        { name: 'debian-1.qcow2', sha256: sha256('qcow2 of debian-1') },
        { name: 'bom.cdx.json', sha256: 'd'.repeat(64) },
      ],
      predicateType: 'https://slsa.dev/provenance/v1',
      predicate: {
        buildDefinition: {
          buildType: 'https://nodepool-builder.dev/build/v1',
          externalParameters: {
            ...PARAMETERS,
            'image-id': 'debian-1',
            diskimage: 'debian',
            formats: ['raw', 'qcow2'],
            environment: { DIB_RELEASE: 'bookworm', PASSWORD: '***' },
          },
          internalParameters: { host: 'builder-1' },
          resolvedDependencies: MATERIALS,
        },
        runDetails: {
          builder: { id: BUILDER.builderId, version: { 'nodepool-builder': '1.2.3' } },
          metadata: {
            invocationId: 'debian-1',
            startedOn: '2026-11-24T11:00:00.000Z',
            finishedOn: '2026-11-24T11:30:00.000Z',
          },
          byproducts: [{ name: 'bom.cdx.json', digest: { sha256: 'd'.repeat(64) } }],
        },
      },
    });
  });

  test('the facts of a build can be read from its statement', async (t) => {
    const build = await finishBuild(temporaryDirectory(t), 'debian-1', {
      materials: [
        ...MATERIALS,
        { name: 'element local, of mine', digest: {}, annotations: { isModified: true } },
      ],
    });
    const facts = buildFactsOf(
      buildStatement(build, BUILDER, PARAMETERS, { reason: 'the image is encrypted' }),
    );
    assert.equal(facts?.kind, 'build');
    assert.equal(facts.builderId, BUILDER.builderId);
    assert.equal(facts.imageId, 'debian-1');
    assert.equal(facts.imageName, 'debian');
    assert.deepEqual(facts.startedAt, new Date('2026-11-24T11:00:00Z'));
    assert.deepEqual(facts.finishedAt, new Date('2026-11-24T11:30:00Z'));
    assert.deepEqual(facts.materials, build.materials);
    assert.equal(facts.billOfMaterials, undefined);
    assert.equal(facts.withoutBillOfMaterials, 'the image is encrypted');
  });

  test('a build’s statement gives each material an address or a digest, as SLSA requires', async (t) => {
    const materials = [{ name: 'a script', digest: {} }];
    const build = await finishBuild(temporaryDirectory(t), 'debian-1', { materials });
    const { predicate } = buildStatement(build, BUILDER, {}, undefined);
    const text = JSON.stringify(predicate);
    assert.ok(text.includes('{"name":"a script","uri":"urn:nodepool-builder:material:a%20script"}'), text);
  });
});

test('a conversion’s statement links the new file to its source', () => {
  const mtime = NOW.toISOString();
  const statement = conversionStatement(
    {
      imageId: 'debian-1',
      imageName: undefined,
      source: { format: 'raw', sha256: 'a'.repeat(64) },
      file: { format: 'vhd', size: 1, mtime, md5: '', sha256: 'b'.repeat(64) },
      directory: '/images',
    },
    BUILDER,
    NOW,
  );
  assert.deepEqual(statement.subjects, [{ name: 'debian-1.vhd', sha256: 'b'.repeat(64) }]);
  const facts = buildFactsOf(statement);
  assert.equal(facts?.kind, 'conversion');
  assert.equal(facts.imageId, 'debian-1');
  assert.deepEqual(facts.finishedAt, NOW);
  assert.deepEqual(facts.materials, [{ name: 'debian-1.raw', digest: { sha256: 'a'.repeat(64) } }]);
});

describe('SLSA provenance of other software', () => {
  const subjects = [{ name: 'file', sha256: 'a'.repeat(64) }];
  const predicate = {
    buildDefinition: { buildType: 'https://zuul.example.org/job', externalParameters: { 'image-id': 7 } },
    runDetails: {
      builder: { id: 'https://zuul.example.org' },
      metadata: { invocationId: 'https://…/build/1' },
    },
  };

  test('another program’s SLSA provenance is read as far as possible', () => {
    const facts = buildFactsOf({ subjects, predicateType: SLSA_PROVENANCE, predicate });
    assert.equal(facts?.kind, 'build');
    assert.equal(facts.builderId, 'https://zuul.example.org');
    assert.equal(facts.imageId, undefined);
    assert.equal(facts.finishedAt, undefined);
    assert.deepEqual(facts.materials, []);
  });

  test('another program’s SLSA provenance is rejected if it is not valid', () => {
    for (const [broken, words] of [
      [{}, 'predicate.buildDefinition is missing'],
      [{ ...predicate, runDetails: { builder: {} } }, 'predicate.runDetails.builder.id is missing'],
      [
        { ...predicate, runDetails: { ...predicate.runDetails, metadata: { finishedOn: 'today' } } },
        'predicate.runDetails.metadata.finishedOn is not a time',
      ],
    ] as const) {
      assert.throws(
        () => buildFactsOf({ subjects, predicateType: SLSA_PROVENANCE, predicate: broken }),
        provenanceFailure('statement-invalid', words),
      );
    }
    assert.equal(
      buildFactsOf({ subjects, predicateType: 'https://example.org/other', predicate: {} }),
      undefined,
    );
  });
});
