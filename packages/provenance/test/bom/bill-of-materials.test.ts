// Not a unit test: compiling the schema of CycloneDX takes more than a second.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import {
  formatBillOfMaterials,
  LARGEST_BILL_OF_MATERIALS,
  readBillOfMaterials,
  writeBillOfMaterials,
} from '../../src/bom/bill-of-materials.ts';
import { withPackageUrls } from '../../src/bom/package-url.ts';
import type { Package } from '../../src/types.ts';

const PACKAGES = await withPackageUrls(
  [
    {
      name: 'openssl',
      version: '1:3.0.7-27.el9',
      architecture: 'x86_64',
      type: 'rpm',
      license: 'Apache-2.0',
    },
    { name: 'bash', version: '5.1.8-9.el9', architecture: 'x86_64', type: 'rpm', license: 'GPLv3+' },
    { name: 'kernel', version: '5.14.0-2.el9', architecture: 'x86_64', type: 'rpm' },
    { name: 'kernel', version: '5.14.0-1.el9', architecture: 'x86_64', type: 'rpm' },
    { name: 'libstdc++', version: '11.4.1-3.el9', architecture: 'i686', type: 'rpm' },
  ],
  { id: 'rocky', versionId: '9.4' },
);

const CONTENTS = {
  imageId: '12-4abc',
  imageName: 'rocky-9',
  finished: '2026-11-24T18:00:00.000Z',
  packages: PACKAGES,
  source: 'the rpm database',
  files: [{ name: '12-4abc.qcow2', sha256: 'ab'.repeat(32) }],
};

async function withFile(work: (path: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'bom-'));
  try {
    await work(join(directory, 'bom.cdx.json'));
  } finally {
    await rm(directory, { recursive: true });
  }
}

test('a bill of materials is valid by the schema of CycloneDX 1.6', async () => {
  const require = createRequire(import.meta.url);
  const resources = join(dirname(require.resolve('@cyclonedx/cyclonedx-library/package.json')), 'res/schema');
  const schemaOf = async (name: string): Promise<object> =>
    JSON.parse(await readFile(join(resources, name), 'utf8')) as object;
  const { Ajv } = require('ajv') as typeof import('ajv');
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats');
  const ajv = new Ajv({ strict: false, formats: { 'iri-reference': true, 'idn-email': true } });
  addFormats.default(ajv);
  ajv.addSchema(
    await schemaOf('spdx.SNAPSHOT.schema.json'),
    'http://cyclonedx.org/schema/spdx.SNAPSHOT.schema.json',
  );
  ajv.addSchema(
    await schemaOf('jsf-0.82.SNAPSHOT.schema.json'),
    'http://cyclonedx.org/schema/jsf-0.82.SNAPSHOT.schema.json',
  );
  const validate = ajv.compile(await schemaOf('bom-1.6.SNAPSHOT.schema.json'));
  const bom = JSON.parse(await formatBillOfMaterials(CONTENTS)) as Record<string, unknown>;
  assert.ok(validate(bom), JSON.stringify(validate.errors));
  assert.equal(bom.specVersion, '1.6');
  assert.match(
    String(bom.serialNumber),
    /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
  );
  assert.equal(validate({ ...bom, serialNumber: 'none' }), false, 'the validator checks');
});

function namesOf(packages: readonly Package[]): string[] {
  return packages.map(({ name, version }) => `${name} ${version}`).toSorted();
}

test('the packages of a bill of materials are read back', async () => {
  await withFile(async (path) => {
    await writeBillOfMaterials(path, CONTENTS);
    const read = await readBillOfMaterials(path);
    assert.deepEqual(namesOf(read), namesOf(PACKAGES));
    for (const one of read)
      assert.deepEqual(
        one,
        PACKAGES.find(({ purl }) => purl === one.purl),
      );
  });
});

async function serialOf(contents: typeof CONTENTS): Promise<unknown> {
  const bom = JSON.parse(await formatBillOfMaterials(contents)) as { serialNumber: string };
  return bom.serialNumber;
}

test('the same packages in another order give the same bytes', async () => {
  const packages = PACKAGES.toReversed();
  assert.equal(await formatBillOfMaterials(CONTENTS), await formatBillOfMaterials({ ...CONTENTS, packages }));
});

test('the serial number depends on the packages', async () => {
  assert.notEqual(await serialOf(CONTENTS), await serialOf({ ...CONTENTS, packages: PACKAGES.slice(1) }));
});

test('a bill of another program is read; components that are no packages of a distribution are left out', async () => {
  await withFile(async (path) => {
    const components = [
      { type: 'library', name: 'left-pad', version: '1.0.0', purl: 'pkg:npm/left-pad@1.0.0' },
      { type: 'library', name: 'odd', purl: 'pkg:odd type' },
      { type: 'file', name: '/etc/passwd' },
      {
        type: 'library',
        name: 'curl',
        purl: 'pkg:deb/debian/curl@7.88.1-10?arch=amd64',
        licenses: [{ expression: 'curl' }],
      },
    ];
    await writeFile(path, JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.4', components }));
    assert.deepEqual(await readBillOfMaterials(path), [
      {
        name: 'curl',
        version: '7.88.1-10',
        architecture: 'amd64',
        type: 'deb',
        purl: 'pkg:deb/debian/curl@7.88.1-10?arch=amd64',
        license: 'curl',
      },
    ]);
  });
});

test('a bill of materials of 200 MB is refused before it is read', async () => {
  await withFile(async (path) => {
    await writeFile(path, '{"bomFormat":"CycloneDX"');
    await truncate(path, 200_000_000);
    const before = process.memoryUsage().rss;
    await assert.rejects(readBillOfMaterials(path), { code: 'bill-of-materials-too-large' });
    assert.ok(process.memoryUsage().rss - before < 3 * LARGEST_BILL_OF_MATERIALS);
  });
});

for (const [title, text] of [
  ['empty', ''],
  ['truncated', '{"bomFormat":"CycloneDX","components":[{"name":"a"'],
  ['of another kind', '{"spdxVersion":"SPDX-2.3"}'],
  ['with a component without a name', '{"bomFormat":"CycloneDX","components":[{}]}'],
  [
    'with a damaged package URL',
    '{"bomFormat":"CycloneDX","components":[{"name":"a","purl":"pkg:deb/%zz"}]}',
  ],
  ['nested too deeply', '['.repeat(500_000)],
] as const) {
  test(`a bill of materials that is ${title} is refused`, async () => {
    await withFile(async (path) => {
      await writeFile(path, text);
      await assert.rejects(readBillOfMaterials(path), { code: 'bill-of-materials-invalid' });
    });
  });
}

test('a missing bill of materials is refused', async () => {
  await withFile(async (path) => {
    await assert.rejects(readBillOfMaterials(path), { code: 'bill-of-materials-invalid' });
  });
});
