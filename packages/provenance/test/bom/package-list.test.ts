import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_PACKAGES, parsePackageList } from '../../src/bom/package-list.ts';

/** Formats each package as `deb curl 7.88 amd64`. */
async function linesOf(text: string): Promise<readonly string[]> {
  const { packages } = await parsePackageList(text);
  return packages.map(({ type, name, version, architecture }) =>
    [type, name, version, architecture].filter((part) => part !== undefined).join(' '),
  );
}

test('each package manager’s lines become packages with their distribution’s package URLs', async () => {
  const text = [
    'os\tfedora\t42',
    'rpm\tbash\t5.2.37-1.fc42\tx86_64\tGPL-3.0-or-later',
    'rpm\topenssl-libs\t1:3.2.4-3.fc42\tx86_64\tApache-2.0',
    'rpm\tgpg-pubkey\t105ef944-65ca83d1\t(none)\tpubkey',
    'rpm\tbasesystem\t11-22.fc42\t(none)\tMIT',
    'apk\tmusl\t1.2.5-r0\tx86_64\tMIT',
    'pkg\tpacman\t6.0.2-3',
    '',
  ];
  assert.deepEqual(await parsePackageList(text.join('\n')), {
    packages: [
      {
        type: 'rpm',
        name: 'bash',
        version: '5.2.37-1.fc42',
        architecture: 'x86_64',
        license: 'GPL-3.0-or-later',
        purl: 'pkg:rpm/fedora/bash@5.2.37-1.fc42?arch=x86_64&distro=fedora-42',
      },
      {
        type: 'rpm',
        name: 'openssl-libs',
        version: '1:3.2.4-3.fc42',
        architecture: 'x86_64',
        license: 'Apache-2.0',
        purl: 'pkg:rpm/fedora/openssl-libs@3.2.4-3.fc42?arch=x86_64&distro=fedora-42&epoch=1',
      },
      {
        type: 'rpm',
        name: 'basesystem',
        version: '11-22.fc42',
        license: 'MIT',
        purl: 'pkg:rpm/fedora/basesystem@11-22.fc42?distro=fedora-42',
      },
      {
        type: 'apk',
        name: 'musl',
        version: '1.2.5-r0',
        architecture: 'x86_64',
        license: 'MIT',
        purl: 'pkg:apk/fedora/musl@1.2.5-r0?arch=x86_64&distro=fedora-42',
      },
      {
        type: 'alpm',
        name: 'pacman',
        version: '6.0.2-3',
        purl: 'pkg:alpm/fedora/pacman@6.0.2-3?distro=fedora-42',
      },
    ],
    skipped: 0,
  });
});

test('the columns of "dpkg-query --show" become Debian packages, or Ubuntu packages if a version says so', async () => {
  const text = 'apt\t2.6.1\nlibc6:amd64\t2.36-9\nlibc6:i386\t2.36-9\n';
  assert.deepEqual(await linesOf(text), ['deb apt 2.6.1', 'deb libc6 2.36-9 amd64', 'deb libc6 2.36-9 i386']);
  for (const [version, namespace] of [
    ['1.2-3', 'debian'],
    ['1.2-3ubuntu1', 'ubuntu'],
  ] as const) {
    const { packages } = await parsePackageList(`apt\t${version}\n`);
    assert.equal(packages[0]?.purl, `pkg:deb/${namespace}/apt@${version}`);
  }
});

test('mkosi’s manifest is read as a package list', async () => {
  const manifest = {
    manifest_version: 1,
    config: { name: 'image', distribution: 'debian', architecture: 'x86-64', release: 'trixie' },
    packages: [
      { type: 'deb', name: 'apt', version: '3.0.3', architecture: 'amd64', size: 4_400_128 },
      { type: 'pkg', name: 'pacman', version: '7.0.0', architecture: 'x86_64', size: 0 },
    ],
  };
  assert.deepEqual(await linesOf(JSON.stringify(manifest, null, 2)), [
    'deb apt 3.0.3 amd64',
    'alpm pacman 7.0.0 x86_64',
  ]);
});

test('a distribution’s packages in CycloneDX and SPDX are read, and other components are omitted', async () => {
  const purl = 'pkg:deb/debian/curl@7.88.1-10?arch=amd64';
  const cyclonedx = {
    bomFormat: 'CycloneDX',
    components: [
      { type: 'library', name: 'left-pad', version: '1.0.0', purl: 'pkg:npm/left-pad@1.0.0' },
      { type: 'library', name: 'odd', purl: 'pkg:odd type' },
      { type: 'file', name: '/etc/passwd' },
      { type: 'library', name: 'curl', purl, licenses: [{ expression: 'curl' }] },
    ],
  };
  const spdx = {
    spdxVersion: 'SPDX-2.3',
    packages: [
      { name: 'image', SPDXID: 'SPDXRef-image' },
      {
        name: 'curl',
        versionInfo: '7.88.1-10',
        licenseDeclared: 'curl',
        externalRefs: [
          { referenceCategory: 'SECURITY', referenceType: 'cpe23Type', referenceLocator: 'cpe:2.3:a:curl' },
          { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl },
        ],
      },
    ],
  };
  for (const document of [cyclonedx, spdx]) {
    assert.deepEqual(await parsePackageList(JSON.stringify(document)), {
      packages: [
        { name: 'curl', version: '7.88.1-10', architecture: 'amd64', type: 'deb', purl, license: 'curl' },
      ],
      skipped: 0,
    });
  }
});

const NONSENSE = [
  'deb\t\t1.0',
  'deb\tname\t',
  'deb\twith space\t1',
  'deb\tname\t\u001b[31m1',
  `deb\t${'x'.repeat(201)}\t1`,
  '__proto__\tname\t1',
  'constructor\tname\t1',
  'unknown\tname\t1',
  'no columns',
  'deb\t\ud800\t1',
];

test('an entry without a usable name and version is counted and omitted, in each format of a package list', async () => {
  const lines = await parsePackageList(['deb\tcurl\t8.0\tamd64', ...NONSENSE].join('\n'));
  assert.deepEqual([lines.packages.length, lines.skipped], [1, NONSENSE.length]);
  const components = [
    { name: '', version: '1', purl: 'pkg:deb/debian/x@1' },
    { name: 'x', version: '1', purl: 'pkg:deb/%zz' },
    { name: 'x', version: '1', purl: 'pkg:deb/debian/x@1?arch=\u001b[31m' },
    { name: 'x', purl: 'pkg:deb/debian/x' },
    { name: 'x', version: '1', purl: 'pkg:deb/debian/x@1' },
  ];
  const bill = await parsePackageList(JSON.stringify({ bomFormat: 'CycloneDX', components }));
  assert.deepEqual([bill.packages.length, bill.skipped], [1, 4]);
});

test('a package is listed without an unusable architecture or license', async () => {
  const { packages } = await parsePackageList('deb\tcurl\t8\t(none)\tx\u0007y\n');
  assert.deepEqual(packages, [{ type: 'deb', name: 'curl', version: '8', purl: 'pkg:deb/debian/curl@8' }]);
});

test('a package list with more entries than any distribution installs is rejected', async () => {
  const lines = Array.from({ length: MAX_PACKAGES + 1 }, (_, index) => `deb\tpackage-${index}\t1`);
  assert.equal((await linesOf(lines.slice(1).join('\n'))).length, MAX_PACKAGES);
  await assert.rejects(parsePackageList(lines.join('\n')), /it lists more than 10000 packages/);
});

for (const [title, text, reason] of [
  ['truncated JSON', '{"bomFormat": "CycloneDX", "components": [{"name": "a"', /it is not JSON/],
  ['JSON that is nested too deeply', '{"components":'.repeat(500_000), /it is not JSON/],
  ['JSON of another kind', '{"name": "curl"}', /JSON of an unknown kind/],
  [
    'a list of components that is a text',
    '{"bomFormat": "CycloneDX", "components": ""}',
    /components is not a list/,
  ],
  [
    'a name that is a number',
    '{"spdxVersion": "2", "packages": [{"name": 1}]}',
    /packages\[0\]\.name is not a string/,
  ],
] as const) {
  test(`a package list with ${title} is rejected with the reason`, async () => {
    await assert.rejects(parsePackageList(text), reason);
  });
}

test('a text without a package is an empty package list', async () => {
  for (const text of ['', '\n\n', 'os\tmini\t\n']) {
    assert.deepEqual(await parsePackageList(text), { packages: [], skipped: 0 });
  }
});
