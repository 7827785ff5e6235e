#!/bin/sh
# Writes the secrets that compose.yaml reads to the folder secrets beside it, unless they are there.
set -eu
cd "$(dirname "$0")"
umask 022
mkdir -p secrets
# Only this folder keeps others out: a container reads its files as another user.
chmod 700 secrets
cd secrets

random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

# write NAME VALUE: a file that is there stays as it is.
write() {
    [ -e "$1" ] || printf '%s' "$2" > "$1"
}

write postgres_password "$(random)"
write holdfast_password "$(random)"
write valkey_password "$(random)"
write s3_access_key "$(random)"
write s3_secret_key "$(random)"
write owner_url "postgresql://holdfast:$(cat postgres_password)@postgres:5432/holdfast"
write database_url "postgresql://holdfast_service:$(cat holdfast_password)@postgres:5432/holdfast"
write redis_url "redis://:$(cat valkey_password)@valkey:6379/0"
write blob_url "s3://holdfast?endpoint=http://seaweedfs:8333&region=us-east-1&allow_http=true&access_key_id=$(cat s3_access_key)&secret_access_key=$(cat s3_secret_key)"
echo "the secrets are in $(pwd)"
