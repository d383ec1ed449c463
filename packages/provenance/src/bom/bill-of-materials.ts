import { createHash } from 'node:crypto';
import type { Models } from '@cyclonedx/cyclonedx-library';
import { JsonReader, writeDurably } from '@nodepool-builder/image-builder/module-kit';
import { ProvenanceError } from '../errors.ts';
import { readLimited } from '../read-limited.ts';
import type { Package } from '../types.ts';
import { packageOrder } from './compare-packages.ts';

/** Contents of a bill of materials. */
export interface BillOfMaterials {
  readonly imageId: string;
  /** `diskimages[].name`. */
  readonly imageName?: string | undefined;
  /** End of the build, ISO 8601. */
  readonly finished: string;
  readonly packages: readonly Package[];
  /** Where the packages were found, for people: `dpkg database in 12-4abc.raw`. */
  readonly source?: string;
  /** Files of the image. Default: none. */
  readonly files?: readonly { readonly name: string; readonly sha256: string }[];
}

/** Upper bound of a bill of materials that is read, in bytes: about 100,000 packages. */
export const LARGEST_BILL_OF_MATERIALS: number = 32 * 2 ** 20;

/** Mode of a document that is published with its image. */
const DOCUMENT_MODE = 0o644;

/** Writes a bill of materials as CycloneDX 1.6 in JSON. The same contents always give the same bytes. */
export async function writeBillOfMaterials(path: string, contents: BillOfMaterials): Promise<void> {
  await writeDurably(path, await formatBillOfMaterials(contents), DOCUMENT_MODE);
}

/** The text that {@link writeBillOfMaterials} writes. */
export async function formatBillOfMaterials(contents: BillOfMaterials): Promise<string> {
  const { Enums, Models, Serialize, Spec } = await import('@cyclonedx/cyclonedx-library');
  const { imageId, imageName, finished, packages, source, files = [] } = contents;
  const toComponent = await componentFactory();
  const image = new Models.Component(Enums.ComponentType.OperatingSystem, imageName ?? imageId, {
    bomRef: `image:${imageId}`,
    version: imageId,
  });
  for (const { name, sha256 } of files) {
    const hashes = new Models.HashDictionary([[Enums.HashAlgorithm['SHA-256'], sha256]]);
    image.components.add(
      new Models.Component(Enums.ComponentType.File, name, { bomRef: `file:${name}`, hashes }),
    );
  }
  const bom = new Models.Bom({
    serialNumber: serialNumberOf(contents),
    version: 1,
    metadata: new Models.Metadata({ component: image, timestamp: new Date(finished) }),
  });
  if (source !== undefined) {
    bom.metadata.properties.add(new Models.Property('nodepool-builder:source', source));
  }
  const references = new Set<string>();
  for (const one of packages.toSorted(packageOrder)) {
    if (references.has(one.purl)) continue;
    references.add(one.purl);
    bom.components.add(toComponent(one));
  }
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  const text = new Serialize.JsonSerializer(factory).serialize(bom, { sortLists: true, space: 1 });
  return `${text}\n`;
}

async function componentFactory(): Promise<(one: Package) => Models.Component> {
  const { Enums, Models, SPDX } = await import('@cyclonedx/cyclonedx-library');
  return ({ name, version, purl, license }) => {
    const component = new Models.Component(Enums.ComponentType.Library, name, {
      bomRef: purl,
      version,
      purl,
    });
    if (license !== undefined) {
      const id = SPDX.fixupSpdxId(license);
      const known = id === undefined ? new Models.NamedLicense(license) : new Models.SpdxLicense(id);
      component.licenses.add(known);
    }
    return component;
  };
}

/** A UUID (version 8, RFC 9562) that depends on the image and its packages alone. */
function serialNumberOf({ imageId, finished, packages, files = [] }: BillOfMaterials): string {
  const facts = [
    imageId,
    finished,
    files.map(({ sha256 }) => sha256).toSorted(),
    packages.map(({ purl }) => purl).toSorted(),
  ];
  const digest = createHash('sha256').update(JSON.stringify(facts)).digest().subarray(0, 16);
  digest.writeUInt8(0x80 | (digest.readUInt8(6) & 0x0f), 6);
  digest.writeUInt8(0x80 | (digest.readUInt8(8) & 0x3f), 8);
  const [, ...parts] = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(digest.toString('hex')) ?? [];
  return `urn:uuid:${parts.join('-')}`;
}

const READER = new JsonReader({
  type: 'object',
  required: ['bomFormat'],
  properties: {
    bomFormat: { const: 'CycloneDX' },
    components: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          version: { type: 'string' },
          purl: { type: 'string' },
          licenses: {
            type: 'array',
            items: {
              type: 'object',
              properties: {
                expression: { type: 'string' },
                license: {
                  type: 'object',
                  properties: { id: { type: 'string' }, name: { type: 'string' } },
                },
              },
            },
          },
        },
      },
    },
  },
});

/** Package URLs of packages of a distribution. */
const OF_A_DISTRIBUTION = /^pkg:(?:deb|rpm|apk)\//;

/**
 * Packages of a distribution in a bill of materials (CycloneDX in JSON, by this or another program). Other components
 * are left out.
 *
 * @throws ProvenanceError `bill-of-materials-invalid`, `bill-of-materials-too-large`
 */
export async function readBillOfMaterials(path: string): Promise<readonly Package[]> {
  const bytes = await readLimited(path, {
    thing: 'the bill of materials',
    limit: LARGEST_BILL_OF_MATERIALS,
    followLinks: false,
    unreadable: 'bill-of-materials-invalid',
    tooLarge: 'bill-of-materials-too-large',
  });
  try {
    return await parseBillOfMaterials(bytes.toString());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ProvenanceError(
      'bill-of-materials-invalid',
      `the bill of materials "${path}" cannot be used: ${reason}; build the image again`,
      { cause: error },
    );
  }
}

/** Packages in the text of a bill of materials. @throws Error with the reason */
export async function parseBillOfMaterials(text: string): Promise<readonly Package[]> {
  const { PackageURL } = await import('packageurl-js');
  const found: Package[] = [];
  for (const { name, version, purl, licenses } of READER.parse(text).components ?? []) {
    // Other types are not parsed: a bill of another program may have types that the library refuses.
    if (purl === undefined || !OF_A_DISTRIBUTION.test(purl)) continue;
    const url = PackageURL.fromString(purl);
    const { arch } = url.qualifiers ?? {};
    const [license] = licenses ?? [];
    const terms = license?.expression ?? license?.license?.id ?? license?.license?.name;
    found.push({
      name,
      version: version ?? url.version ?? '',
      type: url.type as Package['type'],
      purl,
      ...(arch !== undefined && { architecture: arch }),
      ...(terms !== undefined && { license: terms }),
    });
  }
  return found;
}
