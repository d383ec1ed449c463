// Not a unit test: compiling the schema of CycloneDX takes more than a second.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { formatBillOfMaterials } from '../../src/bom/bill-of-materials.ts';
import { packageOrder } from '../../src/bom/compare-packages.ts';
import { parsePackageList } from '../../src/bom/package-list.ts';
import { withPackageUrls } from '../../src/bom/package-url.ts';

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
  source: '12-4abc.packages',
  files: [{ name: '12-4abc.qcow2', sha256: 'ab'.repeat(32) }],
};

test('a bill of materials conforms to the schema of CycloneDX 1.6', async () => {
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

test('a bill of materials lists the packages that it was made from', async () => {
  const { packages, skipped } = await parsePackageList(await formatBillOfMaterials(CONTENTS));
  assert.deepEqual(packages.toSorted(packageOrder), PACKAGES.toSorted(packageOrder));
  assert.equal(skipped, 0);
});

async function serialOf(contents: typeof CONTENTS): Promise<unknown> {
  const bom = JSON.parse(await formatBillOfMaterials(contents)) as { serialNumber: string };
  return bom.serialNumber;
}

test('a bill of materials has the same bytes for the same packages in another order', async () => {
  const packages = PACKAGES.toReversed();
  assert.equal(await formatBillOfMaterials(CONTENTS), await formatBillOfMaterials({ ...CONTENTS, packages }));
});

test('a bill of materials has a serial number that depends on its packages', async () => {
  assert.notEqual(await serialOf(CONTENTS), await serialOf({ ...CONTENTS, packages: PACKAGES.slice(1) }));
});
