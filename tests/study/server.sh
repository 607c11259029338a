# A PostgreSQL server in $folder, for scripts that read this with a dot: server start, server stop, and its $address.
# With the package postgresql; as root, or as a user who may start a server. It listens on a socket in its folder alone.
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
if [ "$(id -u)" = 0 ]; then as="runuser -u postgres --"; else as=; fi
mkdir "$folder/data"
[ -z "$as" ] || chown postgres "$folder/data"
server() { $as "$bin/pg_ctl" -D "$folder/data" -l "$folder/data/log" -w -s -m "${2:-fast}" "$1"; }
$as "$bin/initdb" -D "$folder/data" -U study -A trust > /dev/null
cat >> "$folder/data/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$folder/data'
max_connections = 40
END
server start
address="postgresql://study@/postgres?host=$folder/data"
